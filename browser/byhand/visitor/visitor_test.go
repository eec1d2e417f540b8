package visitor

import "testing"

// Browsers claim to be each other. The one that a person sees is named.
func TestProduct(t *testing.T) {
	const (
		linux  = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
		phone  = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) "
		iphone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
		gecko  = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 "
	)
	for agent, want := range map[string]string{
		linux + "Chrome/142.0.0.0 Safari/537.36":                            "Chrome/142.0.0.0",
		linux + "Chrome/142.0.0.0 Safari/537.36 Edg/142.0.3595.53":          "Edge/142.0.3595.53",
		linux + "Chrome/141.0.0.0 Safari/537.36 OPR/125.0.0.0":              "Opera/125.0.0.0",
		phone + "Chrome/142.0.0.0 Mobile Safari/537.36 EdgA/142.0.0.0":      "Edge/142.0.0.0",
		phone + "SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36": "Samsung Internet/28.0",
		iphone + "Version/26.0 Mobile/15E148 Safari/604.1":                  "Safari/26.0",
		iphone + "CriOS/142.0.7444.77 Mobile/15E148 Safari/604.1":           "Chrome/142.0.7444.77",
		iphone + "FxiOS/144.0 Mobile/15E148 Safari/604.1":                   "Firefox/144.0",
		gecko + "Firefox/140.0":                                             "Firefox/140.0",
		"curl/8.5.0":                                                        "an unknown browser",
		"":                                                                  "an unknown browser",
	} {
		if got := product(agent); got != want {
			t.Errorf("%s: %s, want %s", agent, got, want)
		}
	}
}
