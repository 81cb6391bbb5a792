package mongo

import (
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// BSON is written by appending to a slice with the driver's bsoncore: the hot path makes one document for each task and
// cannot afford a tree of values for it.

// begin opens a document. The number it returns closes it; see end.
func begin(dst []byte) ([]byte, int32) {
	start, dst := bsoncore.AppendDocumentStart(dst)
	return dst, start
}

// beginIn opens a document or an array that is a value of another.
func beginIn(dst []byte, typ bson.Type, key string) ([]byte, int32) {
	return begin(bsoncore.AppendHeader(dst, bsoncore.Type(typ), key))
}

// end closes the document that began at start.
func end(dst []byte, start int32) []byte {
	return bsoncore.UpdateLength(append(dst, 0), start, int32(len(dst)+1)-start)
}

func appendString(dst []byte, key, s string) []byte {
	return bsoncore.AppendStringElement(dst, key, strings.ToValidUTF8(s, "\ufffd"))
}

// appendInt takes the smaller of the two integer types, as other drivers do.
func appendInt(dst []byte, key string, n int64) []byte {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return bsoncore.AppendInt32Element(dst, key, int32(n))
	}
	return bsoncore.AppendInt64Element(dst, key, n)
}

func appendDecimal(dst []byte, key string, d bson.Decimal128) []byte {
	high, low := d.GetBytes()
	return bsoncore.AppendDecimal128Element(dst, key, high, low)
}

// position is the key of an element of an array.
func position(i int) string { return strconv.Itoa(i) }
