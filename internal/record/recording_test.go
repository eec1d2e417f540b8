package record

import (
	"reflect"
	"testing"
)

// run.json names each build that ran once, as the last report of a launch has it, and keeps those of a resumed run.
func TestRunNamesBuilds(t *testing.T) {
	library := &Library{SHA256: "aa"}
	w := made(t, cell)
	launch := func(w *Writer, reports ...EngineInfo) {
		r := w.Begin(cell, Beginning{Repetition: 1})
		for _, e := range reports {
			r.Event(Event{Engine: &e})
		}
		r.End(OK, "", nil, Cost{})
	}
	for range 2 {
		launch(w, EngineInfo{Version: "1", Commit: "0badcafe"},
			EngineInfo{Version: "1", Commit: "0badcafe", Library: library})
	}
	launch(w) // it says nothing of itself
	one := Build{Engine: "webllm", Version: "1", Commit: "0badcafe", Library: "aa"}
	if r := ended(t, w, Interrupted); !reflect.DeepEqual(r.Meta.Engines, []Build{one}) {
		t.Errorf("%+v", r.Meta.Engines)
	}
	again, _ := reopened(t, w.Dir())
	again.Resumed(Resumed{})
	launch(again, EngineInfo{Version: "2", SHA256: "bb"})
	if r := ended(t, again, OK); !reflect.DeepEqual(r.Meta.Engines, []Build{one,
		{Engine: "webllm", Version: "2", SHA256: "bb"}}) {
		t.Errorf("after the run was resumed: %+v", r.Meta.Engines)
	}
}
