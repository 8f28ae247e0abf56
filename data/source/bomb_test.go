package source

import (
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
		"zstd": &parquet.Zstd, "gzip": &parquet.Gzip, "snappy": &parquet.Snappy, "brotli": &parquet.Brotli,
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

// TestPagesOfLZ4AreRefused wants the codec named: what parquet-go v0.32.0 makes of such pages are
// other texts.
func TestPagesOfLZ4AreRefused(t *testing.T) {
	for _, codec := range []format.CompressionCodec{format.Lz4, format.Lz4Raw} {
		if err := boundPages(bytes.NewReader(nil), format.ColumnMetaData{Codec: codec}, 1); err == nil || !strings.Contains(err.Error(), "zstd") {
			t.Errorf("codec %v: %v", codec, err)
		}
	}
}
