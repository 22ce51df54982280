// What the console's modules are checked for. `make console-types` runs it; rules are written out, so that nothing but eslint is needed.
const markup = ["innerHTML", "outerHTML", "insertAdjacentHTML", "writeln", "srcdoc"];

export default [
  {
    files: ["**/*.js"],
    languageOptions: { ecmaVersion: 2024, sourceType: "module" },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      "consistent-return": "off",
      eqeqeq: "error",
      "no-alert": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-var": "error",
      "no-unused-vars": "error",
      "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
      "no-self-compare": "error",
      "no-unreachable": "error",
      "no-constant-condition": ["error", { checkLoops: false }],
      "no-duplicate-imports": "error",
      "prefer-const": "error",
      "no-restricted-properties": ["error", ...markup.map((property) => ({ property, message: "Names of models are text: use dom.js." }))],
    },
  },
];
