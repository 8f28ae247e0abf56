package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// A page is read whole. Writers make pages of about a MiB, some of 100 MB, with some 20,000 values,
// or, where all are equal, a million. The format allows 2 GiB and 2^31 values.
const (
	pageBytesMax  = 256 << 20 // as it is stored, as it is unpacked, and of its texts
	pageValuesMax = 1 << 24
)

// pageBounds are the most bytes of a page of a column, whose values are of a kind and have these
// levels at most.
type pageBounds struct {
	bytes                  int64
	kind                   parquet.Kind
	repetition, definition int
}

// check returns an error if a page of the column chunk m has more bytes or values than are read, or
// is damaged. The library makes room for what a page says before it finds that out. Pages that LZ4
// packed are refused: parquet-go decodes most of them elsewhere than where it then reads, and for a
// damaged one doubles its buffer forever.
func (b pageBounds) check(file io.ReaderAt, m format.ColumnMetaData) error {
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
		if size := int64(max(h.CompressedPageSize, h.UncompressedPageSize)); size > b.bytes {
			return b.tooLong(size)
		}
		body, err := io.ReadAll(io.LimitReader(r, int64(h.CompressedPageSize)))
		if err == nil && int32(len(body)) != h.CompressedPageSize {
			err = damaged("length", io.ErrUnexpectedEOF)
		}
		if err == nil {
			err = b.page(h, body, m.Codec)
		}
		if err != nil {
			return err
		}
	}
}

func (b pageBounds) tooLong(size int64) error {
	return fmt.Errorf("a page of a column has %d bytes or more, and at most %d are read: save the table with smaller pages", size, b.bytes)
}

func damaged(what string, err error) error {
	return fmt.Errorf("a page of a column is damaged: %s: %w", what, err)
}

// page checks a page with that body.
func (b pageBounds) page(h format.PageHeader, body []byte, codec format.CompressionCodec) error {
	switch h.Type {
	case format.DictionaryPage:
		if err := tooMany(int64(h.DictionaryPageHeader.V.NumValues)); err != nil {
			return err
		}
		_, err := b.unpacked(codec, body)
		return err
	case format.DataPage:
		return b.first(h.DataPageHeader.V, body, codec)
	case format.DataPageV2:
		return b.second(h.DataPageHeaderV2.V, body, codec)
	}
	return nil // it is passed over
}

// first checks a page of the first kind, of which all is packed.
func (b pageBounds) first(v format.DataPageHeader, body []byte, codec format.CompressionCodec) error {
	if err := tooMany(int64(v.NumValues)); err != nil {
		return err
	}
	body, err := b.unpacked(codec, body)
	if err != nil {
		return err
	}
	for _, of := range []struct {
		most     int
		encoding format.Encoding
	}{{b.repetition, v.RepetitionLevelEncoding}, {b.definition, v.DefinitionLevelEncoding}} {
		if of.most == 0 {
			continue
		}
		if len(body) < 4 || uint64(binary.LittleEndian.Uint32(body)) > uint64(len(body)-4) {
			return damaged("levels", io.ErrUnexpectedEOF)
		}
		n := 4 + int(binary.LittleEndian.Uint32(body))
		if of.encoding == format.RLE { // of others each level has a bit or more
			if _, err := runs(body[4:n], bits.Len(uint(of.most))); err != nil {
				return err
			}
		}
		body = body[n:]
	}
	return b.values(v.Encoding, body)
}

// second checks a page of the second kind, of which only what follows the levels may be packed.
func (b pageBounds) second(v format.DataPageHeaderV2, body []byte, codec format.CompressionCodec) error {
	if err := tooMany(int64(v.NumValues)); err != nil {
		return err
	}
	repetition, definition := int(v.RepetitionLevelsByteLength), int(v.DefinitionLevelsByteLength)
	if v.NumNulls < 0 || repetition < 0 || definition < 0 || repetition+definition > len(body) {
		return damaged("levels", io.ErrUnexpectedEOF)
	}
	for _, of := range []struct {
		most   int
		levels []byte
	}{{b.repetition, body[:repetition]}, {b.definition, body[repetition : repetition+definition]}} {
		if of.most > 0 {
			if _, err := runs(of.levels, bits.Len(uint(of.most))); err != nil {
				return err
			}
		}
	}
	if v.IsCompressed.Valid && !v.IsCompressed.V {
		codec = format.Uncompressed
	}
	body, err := b.unpacked(codec, body[repetition+definition:])
	if err != nil {
		return err
	}
	return b.values(v.Encoding, body)
}

// tooMany returns an error if a page has more values than are read.
func tooMany(n int64) error {
	if n < 0 || n > pageValuesMax {
		return fmt.Errorf("a page of a column has %d values, and at most %d are read: save the table with smaller pages", n, pageValuesMax)
	}
	return nil
}

// values checks the values of a page, of which its header says no more than are read. Where a value
// takes bits or bytes of its own there is nothing to check.
func (b pageBounds) values(encoding format.Encoding, body []byte) error {
	switch encoding {
	case 2, format.RLEDictionary: // 2 is the same, of early writers
		if len(body) == 0 {
			return nil
		}
		_, err := runs(body[1:], int(body[0]))
		return err
	case format.RLE:
		if b.kind != parquet.Boolean || len(body) < 4 {
			return damaged("encoding", errors.New("runs of other values than true and false"))
		}
		n := min(uint64(binary.LittleEndian.Uint32(body)), uint64(len(body)-4))
		_, err := runs(body[4:4+n], 1)
		return err
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		_, err := differences(body)
		return err
	case format.DeltaByteArray:
		rest, err := differences(body)
		if err == nil {
			_, err = differences(rest)
		}
		if err != nil {
			return err
		}
		shared, err := new(delta.BinaryPackedEncoding).DecodeInt32(nil, body)
		if err != nil {
			return damaged("lengths", err)
		}
		size := int64(len(rest))
		for _, n := range shared { // bytes that a text has in common with the one before
			if size += int64(n); n < 0 || size > b.bytes {
				return b.tooLong(size)
			}
		}
	}
	return nil
}

// runs checks runs of numbers of some bits:
//
//	uvarint 2 * count     | the number, in whole bytes
//	uvarint 2 * count + 1 | 8 * count numbers
//
// The library takes a run of no number without the number.
func runs(body []byte, width int) (numbers uint64, err error) {
	for len(body) > 0 {
		u, n := binary.Uvarint(body)
		if n <= 0 {
			return 0, damaged("runs", io.ErrUnexpectedEOF)
		}
		count, size := u>>1, uint64(width+7)/8
		if err := tooMany(int64(count)); err != nil {
			return 0, err
		}
		if u&1 != 0 || count == 0 {
			count, size = 8*count, count*uint64(width)
		}
		if numbers += count; numbers > pageValuesMax+7 { // of the last eight some may be no values
			return 0, tooMany(int64(numbers))
		}
		if size > uint64(len(body)-n) {
			return 0, damaged("runs", io.ErrUnexpectedEOF)
		}
		body = body[n+int(size):]
	}
	return numbers, nil
}

// differences checks numbers that are stored as differences, and returns what follows them:
//
//	uvarint numbers of a block | uvarint parts of a block | uvarint numbers | varint the first
//	block: varint | u8 bits of a number, for each part | the parts
func differences(body []byte) (rest []byte, err error) {
	next := func() uint64 {
		u, n := binary.Uvarint(body)
		if n <= 0 {
			err = damaged("differences", io.ErrUnexpectedEOF)
			return 0
		}
		body = body[n:]
		return u
	}
	block, parts, numbers := next(), next(), next()
	next()
	switch {
	case err != nil:
		return nil, err
	case numbers > pageValuesMax:
		return nil, tooMany(pageValuesMax + 1)
	case parts == 0 || parts > block || block > 1<<16:
		return nil, damaged("differences", errors.New("wrong blocks"))
	}
	for left := int64(numbers) - 1; left > 0; {
		if next(); err != nil || uint64(len(body)) < parts {
			return nil, damaged("differences", io.ErrUnexpectedEOF)
		}
		widths := body[:parts]
		body = body[parts:]
		for _, width := range widths {
			if left <= 0 {
				break
			}
			left -= int64(block / parts)
			body = body[min(uint64(len(body)), block/parts*uint64(width)/8):]
		}
	}
	return body, nil
}

// unpacked returns the bytes that a page is unpacked to, whatever its header says, or an error if
// they are more than are read.
func (b pageBounds) unpacked(codec format.CompressionCodec, body []byte) (all []byte, err error) {
	if codec == format.Uncompressed || len(body) == 0 { // some writers pack nothing as nothing
		return body, nil
	}
	var in io.Reader
	switch codec {
	case format.Snappy:
		if n, _ := binary.Uvarint(body); n > uint64(b.bytes) {
			return nil, b.tooLong(b.bytes + 1)
		}
		if all, err = parquet.Snappy.Decode(nil, body); err != nil {
			return nil, damaged("snappy", err)
		}
		return all, nil
	case format.Gzip:
		in, err = gzip.NewReader(bytes.NewReader(body))
	case format.Zstd:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(pageBytesMax)); err == nil {
			defer z.Close()
			in = z
		}
	case format.Brotli:
		in = brotli.NewReader(bytes.NewReader(body))
	default:
		return nil, fmt.Errorf("its columns are packed with %v, which is not supported: save the table with zstd or snappy", codec)
	}
	if err == nil {
		all, err = io.ReadAll(io.LimitReader(in, b.bytes+1))
	}
	switch {
	case int64(len(all)) > b.bytes:
		return nil, b.tooLong(int64(len(all)))
	case err != nil:
		return nil, damaged(codec.String(), err)
	}
	return all, nil
}
