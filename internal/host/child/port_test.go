package child_test

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"llmparity/internal/host/child"
)

func TestOnFreePort(t *testing.T) {
	failure := errors.New("failed")
	for _, c := range []struct {
		taken int // number of taken ports
		then  error
		tried int
		want  error
	}{
		{0, nil, 1, nil}, {2, nil, 3, nil}, {4, nil, 5, nil}, {9, nil, 5, child.ErrPortTaken}, {1, failure, 2, failure},
	} {
		tried := 0
		err := child.OnFreePort(func(port int) error {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				t.Error(err)
				return err
			}
			defer l.Close()
			if tried++; tried <= c.taken {
				return fmt.Errorf("starting: %w", child.ErrPortTaken)
			}
			return c.then
		})
		if tried != c.tried || !errors.Is(err, c.want) {
			t.Errorf("%d taken: %d tried, %v; want %d, %v", c.taken, tried, err, c.tried, c.want)
		}
	}
}
