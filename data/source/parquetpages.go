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

// boundPages returns an error if a page of the column chunk m has more than most bytes.
func boundPages(file io.ReaderAt, m format.ColumnMetaData, most int64) error {
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
		n, err := unpacked(codec, body, most)
		if err != nil {
			return err
		}
		if size = max(size, n); size > most {
			return fmt.Errorf("a page of a column has %d bytes or more, and at most %d are read: save the table with smaller pages", size, most)
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return err
		}
	}
}

// unpacked returns the number of bytes that a page is unpacked to, whatever its header says, up to
// one more than most. It is 0 for what is no such page, which the library refuses; only damaged LZ4
// is an error, since the library tries larger and larger buffers for it.
func unpacked(codec format.CompressionCodec, body io.Reader, most int64) (n int64, err error) {
	var in io.Reader
	switch codec {
	case format.Snappy:
		length, _ := binary.ReadUvarint(bufio.NewReader(body))
		return int64(min(length, uint64(most)+1)), nil
	case format.Lz4Raw:
		return unpackedLZ4(bufio.NewReader(body), most)
	case format.Gzip:
		z, err := gzip.NewReader(body)
		if err != nil {
			return 0, nil
		}
		in = z
	case format.Zstd:
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(pageBytesMax))
		if err != nil {
			return 0, nil
		}
		defer z.Close()
		in = z
	case format.Brotli:
		in = brotli.NewReader(body)
	default:
		return 0, nil
	}
	n, _ = io.Copy(io.Discard, io.LimitReader(in, most+1))
	return n, nil
}

// unpackedLZ4 is unpacked for a block of LZ4. It follows the lengths and copies nothing. A block is
// a list of sequences, each of them literals and a copy of earlier bytes; the last one has no copy.
//
//	u8 literals<<4 | copied-4 | u8... | literals | u16 distance | u8...
//
// A length of 15 continues in the bytes up to the first that is not 255.
func unpackedLZ4(in *bufio.Reader, most int64) (n int64, err error) {
	length := func(nibble byte) (l int64) {
		l = int64(nibble)
		for more := nibble == 15; more && err == nil && l <= most; {
			var b byte
			b, err = in.ReadByte()
			l, more = l+int64(b), b == 255
		}
		return l
	}
	for first := true; ; first = false {
		token, e := in.ReadByte()
		if errors.Is(e, io.EOF) && first {
			return 0, nil
		}
		err = e
		literals := length(token >> 4)
		if n += literals; err == nil && n <= most {
			_, err = io.CopyN(io.Discard, in, literals)
		}
		if err != nil || n > most {
			break
		}
		var distance [2]byte
		if _, err = io.ReadFull(in, distance[:]); errors.Is(err, io.EOF) && token&15 == 0 {
			return n, nil
		}
		if d := int64(binary.LittleEndian.Uint16(distance[:])); err == nil && (d == 0 || d > n) {
			err = errors.New("a copy of nothing")
		}
		if n += length(token&15) + 4; err != nil || n > most {
			break
		}
	}
	if err != nil {
		return 0, fmt.Errorf("a page of a column is damaged: LZ4: %w", err)
	}
	return most + 1, nil
}
