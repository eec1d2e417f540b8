package ran

// Values of a cell's Stored: which of these files are there when a launch begins.
const (
	StoredEmpty  = "empty"
	StoredHalf   = "half" // the first half of them, as after an interrupted download
	StoredFilled = "filled"
)

// Store is what a browser keeps of a model once that is loaded.
type Store struct {
	In       string `json:"in"`                     // cache, indexeddb, opfs or none, as it was found
	Files    int    `json:"files"`                  // number of files
	Disk     int64  `json:"disk_bytes"`             // size of the folders in the profile; -1: unknown
	Reported int64  `json:"reported_bytes"`         // what the browser reports to the page
	Quota    int64  `json:"quota_bytes"`            // what it says to grant; Chrome: always 10 GiB more than are used
	Before   int    `json:"files_before,omitempty"` // number of files before the load
}
