package source

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// pageBytesMax bounds a page of a column, as it is stored and unpacked. Writers make pages of about
// a MiB, some of 100 MB; the format allows 2 GiB, and a page is read whole.
const pageBytesMax = 256 << 20

// boundPages returns an error if a page of the column chunk m has more than most bytes. It refuses
// pages that LZ4 packed: parquet-go decodes most of them elsewhere than where it then reads, and
// for a damaged one doubles its buffer forever.
func boundPages(file io.ReaderAt, m format.ColumnMetaData, most int64) error {
	if m.Codec == format.Lz4 || m.Codec == format.Lz4Raw {
		return errors.New("its columns are packed with LZ4, which is not supported: save the table with zstd or snappy")
	}
	at := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		at = m.DictionaryPageOffset
	}
	r := bufio.NewReader(io.NewSectionReader(file, at, m.TotalCompressedSize))
	headers := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(r))
	for {
		var h format.PageHeader
		if err := headers.Decode(&h); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		size := int64(max(h.CompressedPageSize, h.UncompressedPageSize))
		body := io.LimitReader(r, int64(h.CompressedPageSize))
		codec := m.Codec
		if v := h.DataPageHeaderV2; v.Valid { // only what follows the levels may be packed
			levels := int64(v.V.RepetitionLevelsByteLength) + int64(v.V.DefinitionLevelsByteLength)
			if _, err := io.CopyN(io.Discard, body, levels); err != nil {
				return fmt.Errorf("a page ends within its levels: %w", io.ErrUnexpectedEOF)
			}
			if v.V.IsCompressed.Valid && !v.V.IsCompressed.V {
				codec = format.Uncompressed
			}
		}
		if size = max(size, unpacked(codec, body, most)); size > most {
			return fmt.Errorf("a page of a column has %d bytes or more, and at most %d are read: save the table with smaller pages", size, most)
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return err
		}
	}
}

// unpacked returns the number of bytes that a page is unpacked to, whatever its header says, up to
// one more than most. It is 0 for what is no such page, which the library refuses.
func unpacked(codec format.CompressionCodec, body io.Reader, most int64) (n int64) {
	var in io.Reader
	switch codec {
	case format.Snappy:
		length, _ := binary.ReadUvarint(bufio.NewReader(body))
		return int64(min(length, uint64(most)+1))
	case format.Gzip:
		z, err := gzip.NewReader(body)
		if err != nil {
			return 0
		}
		in = z
	case format.Zstd:
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(pageBytesMax))
		if err != nil {
			return 0
		}
		defer z.Close()
		in = z
	case format.Brotli:
		in = brotli.NewReader(body)
	default:
		return 0
	}
	n, _ = io.Copy(io.Discard, io.LimitReader(in, most+1))
	return n
}
