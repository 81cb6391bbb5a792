package mongo

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// BSON is written by appending to a slice: the hot path makes one document for each task and cannot afford a tree of values for it.

// begin opens a document; what it returns beside the slice closes it.
func begin(dst []byte) ([]byte, int) { return append(dst, 0, 0, 0, 0), len(dst) }

// beginIn opens a document or an array that is a value of another.
func beginIn(dst []byte, typ bson.Type, key string) ([]byte, int) {
	return begin(header(dst, typ, key))
}

// end closes the document that began at start.
func end(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

func header(dst []byte, typ bson.Type, key string) []byte {
	return append(append(append(dst, byte(typ)), key...), 0)
}

func appendString(dst []byte, key, s string) []byte {
	s = strings.ToValidUTF8(s, "\ufffd")
	dst = binary.LittleEndian.AppendUint32(header(dst, bson.TypeString, key), uint32(len(s)+1))
	return append(append(dst, s...), 0)
}

func appendInt32(dst []byte, key string, n int32) []byte {
	return binary.LittleEndian.AppendUint32(header(dst, bson.TypeInt32, key), uint32(n))
}

func appendInt64(dst []byte, key string, n int64) []byte {
	return binary.LittleEndian.AppendUint64(header(dst, bson.TypeInt64, key), uint64(n))
}

// appendInt takes the smaller of the two integer types, as other drivers do.
func appendInt(dst []byte, key string, n int64) []byte {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return appendInt32(dst, key, int32(n))
	}
	return appendInt64(dst, key, n)
}

func appendDouble(dst []byte, key string, f float64) []byte {
	return binary.LittleEndian.AppendUint64(header(dst, bson.TypeDouble, key), math.Float64bits(f))
}

func appendDecimal(dst []byte, key string, d bson.Decimal128) []byte {
	high, low := d.GetBytes()
	dst = binary.LittleEndian.AppendUint64(header(dst, bson.TypeDecimal128, key), low)
	return binary.LittleEndian.AppendUint64(dst, high)
}

func appendBool(dst []byte, key string, b bool) []byte {
	dst = header(dst, bson.TypeBoolean, key)
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendNull(dst []byte, key string) []byte { return header(dst, bson.TypeNull, key) }

func appendBinary(dst []byte, key string, b []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(header(dst, bson.TypeBinary, key), uint32(len(b)))
	return append(append(dst, bson.TypeBinaryGeneric), b...)
}

func appendObjectID(dst []byte, key string, id bson.ObjectID) []byte {
	return append(header(dst, bson.TypeObjectID, key), id[:]...)
}

// position is the key of an element of an array.
func position(i int) string { return strconv.Itoa(i) }
