"""Uses a bucket with the aws command. Arguments: endpoint, a large file, and the reader's keys."""

import filecmp
import os
import sys
import tempfile

from awscli.clidriver import create_clidriver  # once: each command is a process that begins with it

endpoint, big, read_access, read_secret = sys.argv[1:]


def aws(*arguments, fails=False, **environment):
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.environ.update(environment)
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            status = 1
            try:
                status = create_clidriver().main(["--endpoint-url", endpoint, *arguments])
            finally:
                sys.stdout.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        said = out.read()
        assert (status != 0) == fails, f"{arguments}: {said} {err.read()}"
        return said


aws("s3", "cp", "--only-show-errors", big, "s3://box/kept/big")  # in parts
aws("s3", "cp", "--only-show-errors", "s3://box/kept/big", "copy")
assert filecmp.cmp(big, "copy", shallow=False)
os.makedirs("tree/sub dir")
for name in ("one", "sub dir/zwei ü", "sub dir/+"):
    with open(os.path.join("tree", name), "w") as f:
        f.write(name)
aws("s3", "sync", "--only-show-errors", "tree", "s3://box/tree")
assert aws("s3", "sync", "tree", "s3://box/tree") == "", "a second sync uploads again"
assert "sub dir/" in aws("s3", "ls", "s3://box/tree/")
aws("s3", "sync", "--only-show-errors", "s3://box/tree", "back")
for name in ("one", "sub dir/zwei ü", "sub dir/+"):
    assert filecmp.cmp(os.path.join("tree", name), os.path.join("back", name), shallow=False)
reader = {"AWS_ACCESS_KEY_ID": read_access, "AWS_SECRET_ACCESS_KEY": read_secret}
aws("s3", "ls", "s3://box/", **reader)
aws("s3", "cp", "tree/one", "s3://box/one", fails=True, **reader)
aws("s3", "rm", "--only-show-errors", "--recursive", "s3://box/tree")
aws("s3", "ls", "s3://box/tree/", fails=True)
