// Command errorlint is errorlint for go vet -vettool, which remembers what it has checked: alone, it would read every
// package anew.
package main

import (
	"github.com/polyfloyd/go-errorlint/errorlint"
	"golang.org/x/tools/go/analysis/unitchecker"
)

func main() { unitchecker.Main(errorlint.NewAnalyzer()) }
