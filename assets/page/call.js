// call calls a function by its path, with one argument in JSON or none: "llmparity.load({…})". Nothing else is evaluated, so a
// policy against eval can hold where only calls are asked.
export function call(expression, scope = globalThis) {
  const [, path, json] = /^([\w.]+)\((.*)\)$/s.exec(expression) ?? [];
  if (!path) throw new Error(`no call: ${expression.slice(0, 80)}`);
  const names = path.split("."), name = names.pop();
  const object = names.reduce((of, key) => of[key], scope);
  return json === "" ? object[name]() : object[name](JSON.parse(json));
}
