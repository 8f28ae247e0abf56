package source

import (
	"bytes"
	"encoding/binary"
	"slices"
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
			err = pageBounds{bytes: most}.check(bytes.NewReader(b), format.ColumnMetaData{Codec: codec.CompressionCodec(), TotalCompressedSize: int64(len(b))})
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
		if err := (pageBounds{bytes: 1}).check(bytes.NewReader(nil), format.ColumnMetaData{Codec: codec}); err == nil || !strings.Contains(err.Error(), "zstd") {
			t.Errorf("codec %v: %v", codec, err)
		}
	}
}

// TestAPageOfFewBytesHasFewValues has pages that name more values, or longer ones, than they have room
// for. The library makes them all: 8 GiB of the first.
func TestAPageOfFewBytesHasFewValues(t *testing.T) {
	uvarints := func(numbers ...uint64) (b []byte) {
		for _, n := range numbers {
			b = binary.AppendUvarint(b, n)
		}
		return b
	}
	zeros := func(n uint64) []byte { // as differences, in blocks of 65,536
		b := uvarints(1<<16, 4, n, 0)
		return append(b, make([]byte, (n+1<<16-1)>>16*5)...)
	}
	same := func(n, length uint64) []byte { // n texts that share 0, length, 2*length... bytes with the one before
		b := zeros(n)
		shared := slices.Concat(uvarints(128, 4, n, 0, 2*length), make([]byte, 4)) // n <= 129
		return slices.Concat(shared, b, bytes.Repeat([]byte("a"), int(length)))
	}
	many := bytes.Repeat(uvarints(2*pageValuesMax, 0), 2)
	for name, page := range map[string]struct {
		bounds pageBounds
		codec  format.CompressionCodec
		header format.PageHeader
		body   []byte
		want   string
	}{
		"header": {header: format.PageHeader{DataPageHeader: of(format.DataPageHeader{NumValues: pageValuesMax + 1})}, want: "values"},
		"header of the second kind": {
			header: format.PageHeader{Type: format.DataPageV2, DataPageHeaderV2: of(format.DataPageHeaderV2{NumValues: 1<<31 - 1})}, want: "values",
		},
		"dictionary": {header: format.PageHeader{Type: format.DictionaryPage, DictionaryPageHeader: of(format.DictionaryPageHeader{NumValues: -1})}, want: "values"},
		"run": {
			header: format.PageHeader{DataPageHeader: of(format.DataPageHeader{NumValues: 1, Encoding: format.RLEDictionary})},
			body:   append([]byte{1}, uvarints(1<<32-2, 0)...), want: "values",
		},
		"runs": {
			header: format.PageHeader{DataPageHeader: of(format.DataPageHeader{NumValues: 1, Encoding: format.RLEDictionary})},
			body:   append([]byte{1}, many...), want: "values",
		},
		"runs behind one of nothing": {
			header: format.PageHeader{DataPageHeader: of(format.DataPageHeader{NumValues: 1, Encoding: format.RLEDictionary})},
			body:   append([]byte{1, 0}, uvarints(1<<32-2, 0)...), want: "values",
		},
		"runs of integers": {
			bounds: pageBounds{kind: parquet.Int32},
			header: format.PageHeader{DataPageHeader: of(format.DataPageHeader{NumValues: 1, Encoding: format.RLE})},
			body:   append([]byte{8, 0, 0, 0}, many...), want: "damaged",
		},
		"runs of true": {
			header: format.PageHeader{DataPageHeader: of(format.DataPageHeader{NumValues: 1, Encoding: format.RLE})},
			body:   append([]byte{byte(len(many)), 0, 0, 0}, many...), want: "values",
		},
		"levels": {
			bounds: pageBounds{definition: 1},
			header: format.PageHeader{DataPageHeader: of(format.DataPageHeader{NumValues: 1, DefinitionLevelEncoding: format.RLE})},
			body:   append([]byte{byte(len(many)), 0, 0, 0}, many...), want: "values",
		},
		"levels of the second kind": {
			bounds: pageBounds{repetition: 1},
			header: format.PageHeader{Type: format.DataPageV2, DataPageHeaderV2: of(format.DataPageHeaderV2{RepetitionLevelsByteLength: int32(len(many))})},
			body:   many, want: "values",
		},
		"lengths": {
			header: format.PageHeader{DataPageHeader: of(format.DataPageHeader{NumValues: 1, Encoding: format.DeltaLengthByteArray})},
			body:   zeros(pageValuesMax + 1), want: "values",
		},
		"texts that begin alike": {
			header: format.PageHeader{DataPageHeader: of(format.DataPageHeader{NumValues: 100, Encoding: format.DeltaByteArray})},
			body:   same(100, 1<<17), want: "bytes or more",
		},
		"a few that begin alike": {
			header: format.PageHeader{DataPageHeader: of(format.DataPageHeader{NumValues: 5, Encoding: format.DeltaByteArray})},
			body:   same(5, 1<<10),
		},
		"nothing, packed": {
			bounds: pageBounds{definition: 1}, codec: format.Gzip,
			header: format.PageHeader{Type: format.DataPageV2, DataPageHeaderV2: of(format.DataPageHeaderV2{
				NumValues: 3, NumNulls: 3, Encoding: format.RLEDictionary, DefinitionLevelsByteLength: 2,
			})},
			body: []byte{6, 0},
		},
		"numbers": {
			header: format.PageHeader{DataPageHeader: of(format.DataPageHeader{NumValues: 1000, Encoding: format.DeltaBinaryPacked})},
			body:   zeros(1000),
		},
	} {
		page.header.CompressedPageSize = int32(len(page.body))
		b, err := thrift.Marshal(new(thrift.CompactProtocol), page.header)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, page.body...)
		page.bounds.bytes = 1 << 20
		err = page.bounds.check(bytes.NewReader(b), format.ColumnMetaData{Codec: page.codec, TotalCompressedSize: int64(len(b))})
		if page.want == "" && err != nil || page.want != "" && (err == nil || !strings.Contains(err.Error(), page.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func of[T any](v T) thrift.Null[T] { return thrift.Null[T]{V: v, Valid: true} }

// FuzzPage checks pages of any kind. What the library makes of those that are accepted is bounded.
func FuzzPage(f *testing.F) {
	f.Add(uint8(format.DataPage), uint8(format.RLEDictionary), uint8(1), []byte{2, 0, 0, 0, 4, 1, 1, 4, 0})
	f.Add(uint8(format.DataPageV2), uint8(format.DeltaByteArray), uint8(0), []byte{128, 1, 4, 1, 0, 128, 1, 4, 1, 2, 'a'})
	f.Add(uint8(format.DataPage), uint8(format.DeltaLengthByteArray), uint8(0), []byte{128, 1, 4, 2, 2, 0, 0, 0, 0, 0, 'a', 'b'})
	f.Fuzz(func(t *testing.T, kind, encoding, levels uint8, body []byte) {
		h := format.PageHeader{
			Type:             format.PageType(kind),
			DataPageHeader:   of(format.DataPageHeader{NumValues: 1, Encoding: format.Encoding(encoding), DefinitionLevelEncoding: format.RLE}),
			DataPageHeaderV2: of(format.DataPageHeaderV2{NumValues: 1, Encoding: format.Encoding(encoding), DefinitionLevelsByteLength: int32(levels)}),
		}
		bounds := pageBounds{bytes: 1 << 20, definition: int(levels)}
		if bounds.page(h, body, format.Uncompressed) != nil || levels > 0 || h.Type != format.DataPage && h.Type != format.DataPageV2 {
			return
		}
		defer func() { _ = recover() }() // the library's, of which readers make errors
		switch format.Encoding(encoding) {
		case format.DeltaByteArray:
			if b, _, err := parquet.DeltaByteArray.DecodeByteArray(nil, body, nil); err == nil && len(b) > 1<<20 {
				t.Errorf("%x has %d bytes of texts", body, len(b))
			}
		case format.RLEDictionary:
			if len(body) > 0 && body[0] <= 32 {
				want, _ := runs(body[1:], int(body[0]))
				if v, err := parquet.RLEDictionary.DecodeInt32(nil, body); err == nil && uint64(len(v)) != want {
					t.Errorf("%x has %d values, not %d", body, len(v), want)
				}
			}
		}
	})
}

// TestAFooterOfFewBytesHasFewParts has footers whose lists and texts are longer than the footers. The
// library makes a list before it reads what is in it: of the first, 176 GiB.
func TestAFooterOfFewBytesHasFewParts(t *testing.T) {
	for name, footer := range map[string][]byte{
		"row groups":         {4<<4 | 9, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07},
		"lists in a list":    {4<<4 | 9, 1<<4 | 9, 0xf5, 0xff, 0xff, 0x03},
		"a text":             {6<<4 | 8, 0xff, 0xff, 0xff, 0xff, 0x07},
		"a list in a struct": {2<<4 | 9, 1<<4 | 12, 1<<4 | 9, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07},
		"a map":              {9<<4 | 11, 0xff, 0xff, 0xff, 0xff, 0x07, 0x55},
		"structs in structs": bytes.Repeat([]byte{1<<4 | 12}, 100),
	} {
		b := append([]byte("PAR1"), footer...)
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(footer))), "PAR1"...)
		_, err := Open([]string{written(t, "x.parquet", b)}, Parquet, "", 0)
		if err == nil || !strings.Contains(err.Error(), "footer is damaged") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
