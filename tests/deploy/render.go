// Renders a Helm chart as `helm template` does, with the template engine and the functions that Helm has (text/template
// and sprig, from Debian): Helm itself is no package of Debian. What it leaves out: dependencies, hooks' order, lookups,
// and the check of values.schema.json, which manifests_test.py makes first.
//
//	render CHART RELEASE VALUES.json    prints {"templates/NAME": text}; VALUES.json are the merged values
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

type files struct{ root string }

func (f files) Get(name string) string {
	content, err := os.ReadFile(filepath.Join(f.root, name))
	if err != nil {
		return ""
	}
	return string(content)
}

func toYaml(value any) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func parse(chart string) (*template.Template, []string, error) {
	set := template.New("gotpl").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	delete(functions, "env")
	delete(functions, "expandenv")
	functions["toYaml"] = toYaml
	functions["include"] = func(name string, data any) (string, error) {
		var out strings.Builder
		err := set.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	functions["required"] = func(message string, value any) (any, error) {
		if value == nil || value == "" {
			return nil, errors.New(message)
		}
		return value, nil
	}
	set.Funcs(functions)
	var names []string
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		name := "templates/" + filepath.Base(path)
		if _, err := set.New(name).Parse(string(text)); err != nil {
			return nil, nil, err
		}
		if !strings.HasPrefix(filepath.Base(path), "_") {
			names = append(names, name)
		}
	}
	return set, names, nil
}

func run(chart, release, values string) error {
	var about struct {
		Name, Version string
		AppVersion    string `yaml:"appVersion"`
	}
	text, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &about)
	}
	if err != nil {
		return err
	}
	text, err = os.ReadFile(values)
	if err != nil {
		return err
	}
	var merged map[string]any
	if err := json.Unmarshal(text, &merged); err != nil {
		return err
	}
	set, names, err := parse(chart)
	if err != nil {
		return err
	}
	data := map[string]any{
		"Values":  merged,
		"Chart":   map[string]any{"Name": about.Name, "Version": about.Version, "AppVersion": about.AppVersion},
		"Release": map[string]any{"Name": release, "Namespace": "default", "Service": "Helm", "IsInstall": true},
		"Files":   files{chart},
	}
	rendered := map[string]string{}
	for _, name := range names {
		var out strings.Builder
		if err := set.ExecuteTemplate(&out, name, data); err != nil {
			return err
		}
		// Helm prints nothing in place of a value that is missing.
		rendered[name] = strings.ReplaceAll(out.String(), "<no value>", "")
	}
	return json.NewEncoder(os.Stdout).Encode(rendered)
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: render CHART RELEASE VALUES.json")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
