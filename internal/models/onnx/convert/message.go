package convert

import (
	"encoding/binary"
	"math"
)

// message is an encoded protobuf message. Numbers of fields are those of onnx.proto3.
type message []byte

// Wire types of fields.
const (
	wireVarint = 0
	wireBytes  = 2
	wireFixed4 = 5
)

func (m message) tag(field, wire int) message { return binary.AppendUvarint(m, uint64(field<<3|wire)) }

func (m message) int(field int, v int64) message {
	return binary.AppendUvarint(m.tag(field, wireVarint), uint64(v))
}

func (m message) float(field int, v float64) message {
	return binary.LittleEndian.AppendUint32(m.tag(field, wireFixed4), math.Float32bits(float32(v)))
}

func (m message) bytes(field int, all ...[]byte) message {
	for _, b := range all {
		m = append(binary.AppendUvarint(m.tag(field, wireBytes), uint64(len(b))), b...)
	}
	return m
}

func (m message) text(field int, all ...string) message {
	for _, s := range all {
		m = m.bytes(field, []byte(s))
	}
	return m
}

// opset is an entry of the list of operator sets.
func opset(domain string, version int64) message { return message{}.text(1, domain).int(2, version) }

// value describes an input or output. A dimension is a number, or the name of one that varies.
func value(name string, kind elem, dims ...any) message {
	shape := message{}
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			shape = shape.bytes(1, message{}.int(1, int64(d)))
		case string:
			shape = shape.bytes(1, message{}.text(2, d))
		}
	}
	tensor := message{}.int(1, int64(kind)).bytes(2, shape)
	return message{}.text(1, name).bytes(2, message{}.bytes(1, tensor))
}

// attr is an attribute of a node.
type attr struct {
	name  string
	value any // an int, float64 or string
}

func (a attr) encode() message {
	m := message{}.text(1, a.name)
	switch v := a.value.(type) {
	case int:
		return m.int(3, int64(v)).int(20, 2)
	case float64:
		return m.float(2, v).int(20, 1)
	}
	return m.text(4, a.value.(string)).int(20, 3)
}

// node is an operation.
func node(domain, op string, inputs, outputs []string, attrs []attr) message {
	m := message{}.text(1, inputs...).text(2, outputs...).text(3, outputs[0]).text(4, op).text(7, domain)
	for _, a := range attrs {
		m = m.bytes(5, a.encode())
	}
	return m
}

// constant is an initializer inside the model's file.
func constant(name string, kind elem, dims []int64, raw []byte) message {
	return initializer(name, kind, dims).bytes(9, raw)
}

func initializer(name string, kind elem, dims []int64) message {
	m := message{}
	for _, d := range dims {
		m = m.int(1, d)
	}
	return m.int(2, int64(kind)).text(8, name)
}
