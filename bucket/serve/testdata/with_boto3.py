"""Uses a bucket as programs with boto3 do. Arguments: endpoint, a large file, and the reader's keys."""

import hashlib
import io
import sys
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

endpoint, big, read_access, read_secret = sys.argv[1:]


def connect(**config):
    return boto3.client("s3", endpoint_url=endpoint, config=Config(retries={"total_max_attempts": 1}, **config))


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as e:
        got = e.response["Error"]["Code"]
        assert got in code.split("|"), f"got {got}, want {code}"
    else:
        raise AssertionError(f"not refused: {arguments}")


def digest(b):
    return hashlib.sha256(b).hexdigest()


with open(big, "rb") as f:
    whole = f.read()

for config in ({}, {"request_checksum_calculation": "when_required"}, {"s3": {"payload_signing_enabled": True}}):
    s3 = connect(**config)
    s3.head_bucket(Bucket="box")
    put = s3.put_object(Bucket="box", Key="a/ü b+c", Body=b"body")
    got = s3.get_object(Bucket="box", Key="a/ü b+c")
    assert got["Body"].read() == b"body" and got["ETag"] == put["ETag"]
    assert s3.get_object(Bucket="box", Key="a/ü b+c", Range="bytes=1-2")["Body"].read() == b"od"
    s3.put_object(Bucket="box", Key="empty", Body=b"")
    s3.put_object(Bucket="box", Key="stream", Body=io.BytesIO(whole[:100_000]))
    assert s3.head_object(Bucket="box", Key="stream")["ContentLength"] == 100_000
    for algorithm in ("CRC32", "SHA1", "SHA256"):
        s3.put_object(Bucket="box", Key="sum", Body=b"body", ChecksumAlgorithm=algorithm)
    refused("BadDigest", s3.put_object, Bucket="box", Key="sum", Body=b"body", ChecksumSHA256="A" * 43 + "=")
    s3.put_object(Bucket="box", Key="once", Body=b"1", IfNoneMatch="*")
    refused("PreconditionFailed", s3.put_object, Bucket="box", Key="once", Body=b"2", IfNoneMatch="*")
    refused("InvalidRange", s3.get_object, Bucket="box", Key="once", Range="bytes=5-")
    refused("NoSuchKey", s3.get_object, Bucket="box", Key="none")
    refused("404", s3.head_object, Bucket="box", Key="none")
    refused("AccessDenied", s3.list_objects_v2, Bucket="other-box")
    refused("NotImplemented", s3.copy_object, Bucket="box", Key="copy", CopySource="box/once")
    refused("NotImplemented", s3.get_bucket_versioning, Bucket="box")
    s3.delete_object(Bucket="box", Key="once")

    part = TransferConfig(multipart_threshold=6 << 20, multipart_chunksize=6 << 20, max_concurrency=3)
    s3.upload_file(big, "box", "kept/big", Config=part)
    s3.download_file("box", "kept/big", "down", Config=part)
    with open("down", "rb") as f:
        assert digest(f.read()) == digest(whole)
    upload = s3.create_multipart_upload(Bucket="box", Key="aborted")
    s3.upload_part(Bucket="box", Key="aborted", UploadId=upload["UploadId"], PartNumber=1, Body=b"x")
    s3.abort_multipart_upload(Bucket="box", Key="aborted", UploadId=upload["UploadId"])
    refused("NoSuchUpload", s3.upload_part, Bucket="box", Key="aborted", UploadId=upload["UploadId"], PartNumber=1, Body=b"x")

    for i in range(25):
        s3.put_object(Bucket="box", Key=f"list/{i:02}/ä", Body=b"")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="box", Prefix="list/", PaginationConfig={"PageSize": 7})
    assert [o["Key"] for p in pages for o in p["Contents"]] == [f"list/{i:02}/ä" for i in range(25)]
    pages = s3.get_paginator("list_objects").paginate(Bucket="box", Prefix="list/", Delimiter="/", PaginationConfig={"PageSize": 7})
    assert [c["Prefix"] for p in pages for c in p["CommonPrefixes"]] == [f"list/{i:02}/" for i in range(25)]
    bucket = boto3.resource("s3", endpoint_url=endpoint).Bucket("box")
    bucket.objects.filter(Prefix="list/").delete()
    assert list(bucket.objects.filter(Prefix="list/")) == []
    assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["box"]
    s3.get_bucket_location(Bucket="box")

    url = connect(signature_version="s3v4").generate_presigned_url("get_object", {"Bucket": "box", "Key": "a/ü b+c"})
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == b"body"

reader = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id=read_access, aws_secret_access_key=read_secret)
assert reader.get_object(Bucket="box", Key="stream")["Body"].read() == whole[:100_000]
assert reader.list_objects_v2(Bucket="box")["KeyCount"] > 0
refused("AccessDenied", reader.put_object, Bucket="box", Key="stream", Body=b"x")
refused("AccessDenied", reader.delete_object, Bucket="box", Key="stream")
refused("AccessDenied", reader.create_multipart_upload, Bucket="box", Key="stream")
wrong = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id=read_access, aws_secret_access_key="wrong")
refused("SignatureDoesNotMatch", wrong.get_object, Bucket="box", Key="stream")
unknown = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id="AKIA", aws_secret_access_key="wrong")
refused("InvalidAccessKeyId", unknown.get_object, Bucket="box", Key="stream")
