package source

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// A table that has one long text a thousand times, in a dictionary, is read a few texts at a time,
// not a page of them.
func TestATableOfOneLongTextIsReadInPieces(t *testing.T) {
	type row struct {
		Text string `parquet:"text,dict,zstd"`
	}
	var table bytes.Buffer
	w := parquet.NewGenericWriter[row](&table)
	rows := make([]row, 1000)
	for i := range rows {
		rows[i].Text = strings.Repeat("a", pieceBytes/4)
	}
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if table.Len() > 2<<20 { // it has the text some times, in its statistics
		t.Fatalf("the table has %d bytes", table.Len())
	}
	list, err := Open([]string{written(t, "x.parquet", table.Bytes())}, Parquet, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = list[0].Read(t.Context(), Position{}, func(p *Piece) error {
		size := 0
		for _, d := range p.documents {
			size += len(d)
		}
		if size > 2*pieceBytes {
			t.Fatalf("a piece has %d texts of %d bytes together", len(p.documents), size)
		}
		n += len(p.documents)
		return nil
	})
	if err != nil || n != len(rows) {
		t.Errorf("%d texts were read, %v", n, err)
	}
}

// TestAPageThatIsTooLongIsNotRead reads tables of some kilobytes whose page is longer than is read,
// with a header that says so, and with one that does not.
func TestAPageThatIsTooLongIsNotRead(t *testing.T) {
	const most = 1 << 20
	for name, codec := range map[string]compress.Codec{
		"zstd": &parquet.Zstd, "gzip": &parquet.Gzip, "snappy": &parquet.Snappy, "lz4": &parquet.Lz4Raw, "brotli": &parquet.Brotli,
	} {
		body, err := codec.Encode(nil, make([]byte, most+1))
		if err != nil {
			t.Fatal(err)
		}
		for _, says := range []int32{most + 1, 1000} {
			h := format.PageHeader{Type: format.DataPage, UncompressedPageSize: says, CompressedPageSize: int32(len(body))}
			b, err := thrift.Marshal(new(thrift.CompactProtocol), h)
			if err != nil {
				t.Fatal(err)
			}
			b = append(b, body...)
			err = boundPages(bytes.NewReader(b), format.ColumnMetaData{Codec: codec.CompressionCodec(), TotalCompressedSize: int64(len(b))}, most)
			if err == nil || !strings.Contains(err.Error(), "smaller pages") {
				t.Errorf("%s, %d bytes said: %v", name, says, err)
			}
		}
	}
}

// FuzzUnpackedLZ4 compares the length of a block with that of what the library makes of it. The
// library never ends for a block that it cannot read, so what it cannot read must be refused.
func FuzzUnpackedLZ4(f *testing.F) {
	const most = 1 << 16
	text := []byte(strings.Repeat("the same words, ", 40) + strings.Repeat("a", 600) + "end")
	for _, data := range [][]byte{nil, text[:1], text[:5], text, make([]byte, 1000), bytes.Repeat(text, 50)} {
		b, err := parquet.Lz4Raw.Encode(nil, data)
		if err != nil {
			f.Fatal(err)
		}
		if n, err := unpackedLZ4(bufio.NewReader(bytes.NewReader(b)), most); n != int64(len(data)) || err != nil {
			f.Errorf("%d bytes are said to be %d, %v", len(data), n, err)
		}
		f.Add(b)
		if len(b) > 4 {
			f.Add(b[:len(b)-3])
		}
	}
	f.Add([]byte{0x10, 'a', 2, 0, 0}) // copies from before the beginning
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := unpackedLZ4(bufio.NewReader(bytes.NewReader(b)), most)
		if err != nil || n > most {
			return
		}
		if data, err := parquet.Lz4Raw.Decode(nil, b); err != nil || int64(len(data)) != n {
			t.Errorf("%x has %d bytes, %v; unpackedLZ4 says %d", b, len(data), err, n)
		}
	})
}

// TestADamagedPageOfLZ4IsRefused looks at a page that copies from before its beginning.
func TestADamagedPageOfLZ4IsRefused(t *testing.T) {
	body := []byte{0x10, 'a', 2, 0, 0}
	b, err := thrift.Marshal(new(thrift.CompactProtocol), format.PageHeader{UncompressedPageSize: 5, CompressedPageSize: int32(len(body))})
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, body...)
	m := format.ColumnMetaData{Codec: format.Lz4Raw, TotalCompressedSize: int64(len(b))}
	if err := boundPages(bytes.NewReader(b), m, pageBytesMax); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}
