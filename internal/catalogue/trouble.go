package catalogue

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"llmparity/internal/fault"
)

// What may be wrong with a file that is fetched; everything else is trouble of the network.
type (
	// errStatus is an answer that isn't the file.
	errStatus struct {
		code  int
		after time.Duration // that the server asks to be left alone for
	}
	errCut      struct{ got, want int64 }
	errWrong    struct{ error } // of the bytes that came
	errDisk     struct{ error }
	errPatience struct {
		tries int
		error
	}
)

func (e *errStatus) Error() string {
	return fmt.Sprintf("the answer is %d %s", e.code, http.StatusText(e.code))
}
func (e *errCut) Error() string {
	return fmt.Sprintf("the connection was cut after %d of %d bytes", e.got, e.want)
}
func (e *errPatience) Error() string { return fmt.Sprintf("%v (tried %d times)", e.error, e.tries) }
func (e *errWrong) Unwrap() error    { return e.error }
func (e *errDisk) Unwrap() error     { return e.error }
func (e *errPatience) Unwrap() error { return e.error }

// again tells whether trouble may be over at the next attempt. That a server can't be reached at all is told at once,
// unless it could be before.
func (f *fetcher) again(err error) bool {
	var status *errStatus
	if errors.As(err, &status) {
		return status.code >= 500 || status.code == http.StatusTooManyRequests ||
			status.code == http.StatusRequestTimeout
	}
	for _, final := range []any{new(*errWrong), new(*errDisk), new(*errRedirect),
		new(*tls.CertificateVerificationError)} {
		if errors.As(err, final) {
			return false
		}
	}
	return !unreached(err) || f.meter.reached()
}

// unreached tells whether not even a connection came about.
func unreached(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, &dns)
}

// reported turns trouble with a file into a fault: which file, what is wrong with it, what to do.
func (f *fetcher) reported(ctx context.Context, w wanted, err error) error {
	var disk *errDisk
	switch {
	case ctx.Err() != nil:
		return err
	case errors.As(err, &disk):
		return diskFault(disk.error, f.store)
	}
	what := "model %s: %s can't be had from %s"
	if wrong(err) {
		what = "model %s: %s from %s is wrong"
	}
	return fault.Wrap(fault.Download, cause(err, w.url), f.advice(err), what, f.entry.ID, w.name, w.shown)
}

// wrong tells whether bytes came, but not the right ones.
func wrong(err error) bool { return errors.As(err, new(*errWrong)) }

// wrongSize is a file that is smaller or larger than it should be.
func wrongSize(want, got int64) error {
	return &errWrong{fmt.Errorf("it should have %d bytes, it has %d", want, got)}
}

// cause is an error without the address, which the fault names already.
func cause(err error, at *url.URL) error {
	var status *errStatus
	if at.Scheme == "file" && errors.As(err, &status) {
		switch status.code {
		case http.StatusNotFound:
			return fmt.Errorf("not found%w", silent{err})
		case http.StatusForbidden:
			return fmt.Errorf("cannot be read%w", silent{err})
		case http.StatusMovedPermanently:
			return fmt.Errorf("it is a folder%w", silent{err})
		}
	}
	var u *url.Error
	if errors.As(err, &u) {
		var patience *errPatience
		if errors.As(err, &patience) {
			return &errPatience{patience.tries, u.Err}
		}
		return u.Err
	}
	return err
}

// silent keeps an error in the chain without its text.
type silent struct{ err error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.err }

func (f *fetcher) advice(err error) string {
	var status *errStatus
	final := errors.As(err, &status) && !f.again(status)
	switch mirror := f.from.mirror != nil; {
	case unreached(err) && mirror:
		return "check the mirror's address, or leave --mirror out"
	case unreached(err):
		return "check the network, or name a mirror with --mirror URL or --mirror FOLDER"
	case final && mirror:
		return "the mirror must have it there, as the public address has it; mend it, or leave --mirror out"
	case final:
		return "choose another model, or name a mirror that has it with --mirror"
	case f.again(err):
		return "try again later: what was fetched is kept"
	case mirror:
		return "mend the mirror, or leave --mirror out"
	}
	return "try again, or name a mirror with --mirror"
}
