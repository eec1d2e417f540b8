package plan

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"llmparity/internal/fault"
	"llmparity/internal/figure"
	"llmparity/internal/nearest"
)

// gateFields are the words of the section that are no figures.
func gateFields() []string {
	return []string{"level", "failed", "gone", "inconclusive", "no_baseline", "under_test", "detect", "baseline",
		"vs_baseline", "parity"}
}

// GateIn reads the gate of a plan's text alone, whatever else stands there; nil where it has none.
func GateIn(text []byte, file string) (*Gate, error) {
	g, err := decodeGate(text, true)
	if err != nil {
		return nil, yamlFault(err, file)
	}
	if err := g.Validate(); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "%s", file)
	}
	return g, nil
}

// decodeGate reads a gate that stands alone, or below its word in a plan.
func decodeGate(text []byte, inPlan bool) (g *Gate, err error) {
	defer survive(&err)
	file, err := parsed(text, "a gate")
	if err != nil {
		return nil, err
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, errors.New("one document is wanted, such as `peak_pss_mb: {max: 900}`")
	}
	body := file.Docs[0].Body
	fields, err := mapping(body, "a gate such as `peak_pss_mb: {max: 900}`")
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		if f.Key.GetToken().Value == "gate" && (inPlan || len(fields) == 1) {
			body, inPlan = f.Value, false
			break
		}
	}
	if inPlan {
		return nil, nil
	}
	g = &Gate{}
	return g, g.UnmarshalYAML(body)
}

// UnmarshalYAML reads the section; what is wrong is told with its line.
func (g *Gate) UnmarshalYAML(node ast.Node) error {
	fields, err := mapping(node, "a gate")
	if err != nil {
		return err
	}
	for _, f := range fields {
		name := f.Key.GetToken().Value
		switch name {
		case "level":
			err = level(f.Value, &g.Level)
		case "failed":
			err = level(f.Value, &g.Failed)
		case "gone":
			err = level(f.Value, &g.Gone)
		case "inconclusive", "unknown": // the second is its name until now
			if seen := g.Inconclusive != ""; seen {
				return at(f.Key, "inconclusive and unknown are one field: give inconclusive alone")
			}
			g.OldName = name == "unknown"
			err = level(f.Value, &g.Inconclusive)
		case "no_baseline":
			g.NoBaseline, err = scalar(f.Value)
			err = cmp.Or(err, placed(f.Value, validNoBaseline(g.NoBaseline)))
		case "under_test":
			err = g.readUnderTest(f.Value)
		case "detect":
			g.Detect, err = detectOf(f.Value)
		case "baseline":
			g.Baseline, err = scalar(f.Value)
		case "vs_baseline":
			err = g.readChanges(f.Value)
		case "parity":
			err = g.readParity(f)
		default:
			err = g.readLimits(name, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) readUnderTest(node ast.Node) error {
	err := each(node, func(n ast.Node) error {
		text, err := scalar(n)
		for t := range strings.SplitSeq(text, ",") {
			g.UnderTest = append(g.UnderTest, strings.TrimSpace(t))
		}
		return err
	})
	return cmp.Or(err, placed(node, validUnderTest(g.UnderTest)))
}

// detectOf reads a regression, which has no sign of its own.
func detectOf(node ast.Node) (float64, error) {
	v, err := shareOf(node)
	if err == nil && v == 0 {
		err = at(node, "no number of launches rules out a change of nothing: give a share such as 15%%")
	}
	return v, cmp.Or(err, placed(node, validDetect(v)))
}

func (g *Gate) readLimits(name string, f *ast.MappingValueNode) error {
	row, err := figure.Find(name)
	if err != nil {
		near := nearest.Of(name, append(gateFields(), figure.Typed()...), 3)
		return at(f.Key, "there is no figure and no field %q of a gate; the nearest are %s", name,
			strings.Join(near, ", "))
	}
	return each(f.Value, func(n ast.Node) error {
		l := GateLimit{Figure: row}
		fields, err := mapping(n, "a limit such as {max: 900}")
		if err != nil {
			return err
		}
		for _, f := range fields {
			switch field := f.Key.GetToken().Value; field {
			case "min":
				l.Min, err = limit(f.Value)
			case "max":
				l.Max, err = limit(f.Value)
			default:
				err = common(f, &l.GateScope, &l.Level, "min", "max")
			}
			if err != nil {
				return err
			}
		}
		g.Limits = append(g.Limits, l)
		return placed(n, l.valid())
	})
}

func (g *Gate) readChanges(node ast.Node) error {
	figures, err := mapping(node, "a figure and a change such as {decode_tps: -5%}")
	if err != nil {
		return err
	}
	for _, f := range figures {
		row, err := figure.Find(f.Key.GetToken().Value)
		if err != nil {
			return at(f.Key, "%s", err)
		}
		err = each(f.Value, func(n ast.Node) error {
			c := GateChange{Figure: row}
			if err := c.read(n); err != nil {
				return err
			}
			g.Changes = append(g.Changes, c)
			return placed(n, c.valid())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *GateChange) read(n ast.Node) (err error) {
	if _, group := n.(ast.MapNode); !group {
		c.Change, err = shareOf(n)
		return err
	}
	fields, err := mapping(n, "a change such as -5%")
	if err != nil {
		return err
	}
	there := false
	for _, f := range fields {
		switch f.Key.GetToken().Value {
		case "change":
			there = true
			c.Change, err = shareOf(f.Value)
		case "detect":
			c.Detect, err = detectOf(f.Value)
		default:
			err = common(f, &c.GateScope, &c.Level, "change", "detect")
		}
		if err != nil {
			return err
		}
	}
	if !there {
		return at(n, "there is no change: give one such as -5%%")
	}
	return nil
}

func (g *Gate) readParity(of *ast.MappingValueNode) error {
	fields, err := mapping(of.Value, "what parity must be, such as {min_agreement: 100%}")
	if err != nil {
		return err
	}
	p := &GateParity{}
	for _, f := range fields {
		switch f.Key.GetToken().Value {
		case "min_agreement":
			p.MinAgreement, err = shareOf(f.Value)
		case "first_divergence":
			var text string
			if text, err = scalar(f.Value); err == nil {
				if p.FirstDiffers, err = strconv.Atoi(text); err != nil {
					err = at(f.Value, "%q stands where a whole number is wanted", text)
				}
			}
		case "with":
			p.With, err = scalar(f.Value)
		default:
			err = common(f, &p.GateScope, &p.Level, "min_agreement", "first_divergence", "with")
		}
		if err != nil {
			return err
		}
	}
	g.Parity = p
	return placed(of.Key, p.valid())
}

// common reads what every check may have; others are the words that this one has beside that.
func common(f *ast.MappingValueNode, s *GateScope, l *GateLevel, others ...string) (err error) {
	switch name := f.Key.GetToken().Value; name {
	case "engine":
		s.Engine, err = scalar(f.Value)
	case "model":
		s.Model, err = scalar(f.Value)
	case "prompt":
		s.Prompt, err = scalar(f.Value)
	case "level":
		err = level(f.Value, l)
	default:
		return at(f.Key, "unknown field %q; the nearest is %s", name,
			nearest.Of(name, append(others, "engine", "model", "prompt", "level"), 1)[0])
	}
	return err
}

// mapping gives the fields of a group. A mapping of one line may come without a node of its own.
func mapping(node ast.Node, what string) ([]*ast.MappingValueNode, error) {
	var out []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		out = n.Values
	case *ast.MappingValueNode:
		out = []*ast.MappingValueNode{n}
	default:
		return nil, at(node, "%s is wanted", what)
	}
	for _, f := range out {
		if f.Key.IsMergeKey() {
			return nil, at(f.Key, "write a gate out: nothing is merged into one")
		}
	}
	return out, nil
}

// each goes through a list, or takes a single one for a list of it.
func each(node ast.Node, f func(ast.Node) error) error {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return f(node)
	}
	for _, n := range list.Values {
		if err := f(n); err != nil {
			return err
		}
	}
	return nil
}

// scalar is a single value's text.
func scalar(node ast.Node) (string, error) {
	if text, ok := single(node); ok {
		return text, nil
	}
	switch node.(type) {
	case *ast.AliasNode, *ast.AnchorNode:
		return "", at(node, "write a gate's values out: none is taken from elsewhere")
	}
	return "", at(node, "a single value is wanted")
}

func level(node ast.Node, into *GateLevel) error {
	text, err := scalar(node)
	if err != nil {
		return err
	}
	*into = GateLevel(text)
	return placed(node, into.valid())
}

func limit(node ast.Node) (*float64, error) {
	text, err := scalar(node)
	if err != nil {
		return nil, err
	}
	v, err := ParseLimit(text)
	return &v, placed(node, err)
}

func shareOf(node ast.Node) (float64, error) {
	text, err := scalar(node)
	if err != nil {
		return 0, err
	}
	v, err := ParseShare(text)
	return v, placed(node, err)
}

// placed gives an error the line where it arose.
func placed(node ast.Node, err error) error {
	if err == nil {
		return nil
	}
	return at(node, "%s", err)
}

func at(node ast.Node, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if node == nil || node.GetToken() == nil {
		return errors.New("gate: " + text)
	}
	return &yaml.SyntaxError{Message: "gate: " + text, Token: node.GetToken()}
}
