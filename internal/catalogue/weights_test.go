package catalogue_test

import (
	"encoding/json"
	"strings"
	"testing"

	"llmparity/internal/catalogue"
)

// list has a float32 that is stored as bf16, packed integers and a scalar.
const list = `{"metadata":{"ParamSize":3,"ParamBytes":36.0,"BitsPerParam":4.5},"records":[{"dataPath":"params_shard_0.bin","format":"raw-shard",
"nbytes":22,"md5sum":"0123456789abcdef0123456789abcdef","records":[
{"name":"a","shape":[2,3],"dtype":"float32","format":"f32-to-bf16","nbytes":12,"byteOffset":0},
{"name":"b","shape":[1,2],"dtype":"uint32","format":"f32-to-bf16","nbytes":8,"byteOffset":12},
{"name":"c","shape":[],"dtype":"bfloat16","format":"raw","nbytes":2,"byteOffset":20}]}]}`

func TestParseWeights(t *testing.T) {
	w, err := catalogue.ParseWeights([]byte(list))
	if err != nil || w.Bytes() != 22 || len(w.Shards[0].Tensors) != 3 {
		t.Fatalf("%+v, %v", w, err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"shape":[2,3]`, `"shape":[2,4]`, `"a" is float32 [2 4], which takes 16 bytes, not 12`},
		{`"shape":[2,3]`, `"shape":[2,-3]`, "sizes"},
		{`"shape":[2,3]`, `"shape":[4611686018427387904,3]`, "too large"},
		{`"shape":[1,2]`, `"shape":[4294967296,4294967296]`, "too large"},
		{`"dtype":"uint32"`, `"dtype":"uint16"`, "takes 4 bytes"},
		{`"dtype":"uint32"`, `"dtype":"string"`, "unknown type"},
		{`"format":"f32-to-bf16","nbytes":12`, `"format":"raw","nbytes":12`, "takes 24 bytes"},
		{`"byteOffset":12`, `"byteOffset":11`, "inside another one"},
		{`"byteOffset":12`, `"byteOffset":13`, "belong to no weight"},
		{`"byteOffset":20`, `"byteOffset":21`, "not inside"},
		{`"byteOffset":0`, `"byteOffset":-1`, "not inside"},
		{`"nbytes":22`, `"nbytes":23`, "take 22 bytes, it has 23"},
		{`"nbytes":22`, `"nbytes":21`, "not inside"},
		{`"nbytes":22`, `"nbytes":0`, "0 bytes"},
		{`"name":"b"`, `"name":"a"`, "twice"},
		{`"name":"b"`, `"name":""`, "no name"},
		{`0123456789abcdef0`, `0`, "MD5"},
		{`params_shard_0.bin`, `../params_shard_0.bin`, "valid file name"},
		{`params_shard_0.bin`, `Tokenizer.json`, "the name of another file"},
		{`params_shard_0.bin`, `lib.wasm`, "the name of another file"},
		{`params_shard_0.bin`, `a.part`, "the name of another file"},
		{`"records":[{"data`, `"records":[],"other":[{"data`, "0 shards"},
		{`}]}]}`, ``, "EOF"},
	} {
		text := strings.Replace(list, c.old, c.new, 1)
		if text == list {
			t.Fatalf("%q changes nothing", c.old)
		}
		if _, err := catalogue.ParseWeights([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s instead of %s: %v, want %s", c.new, c.old, err, c.want)
		}
	}
}

func FuzzParseWeights(f *testing.F) {
	f.Add([]byte(list))
	f.Add([]byte(`<!doctype html>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := catalogue.ParseWeights(text)
		if err != nil {
			return
		}
		if w.Bytes() <= 0 {
			t.Errorf("%d bytes", w.Bytes())
		}
		again, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := catalogue.ParseWeights(again); err != nil {
			t.Errorf("what was read is refused when it is written: %v", err)
		}
	})
}
