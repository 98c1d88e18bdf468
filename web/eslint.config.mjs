// SPDX-License-Identifier: Apache-2.0
// The scripts of a page share one scope, so that names of other files are the compiler's business (scripts/check_web.mjs).
import js from "@eslint/js";

export default [
  {ignores: ["node_modules/**", "*.mjs", "*.d.ts"]},
  {
    files: ["**/*.js"],
    languageOptions: {ecmaVersion: 2022, sourceType: "script"},
    rules: {
      ...js.configs.recommended.rules,
      "no-undef": "off",
      "no-unused-vars": ["error", {vars: "local", args: "after-used", argsIgnorePattern: "^_"}],
      "no-var": "error",
      "prefer-const": ["error", {destructuring: "all"}],
      eqeqeq: ["error", "always", {null: "ignore"}],
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-shadow-restricted-names": "error",
      "no-throw-literal": "error",
      "no-control-regex": "off",  // the pages show control characters as escapes
      "no-restricted-properties": ["error", {property: "innerHTML"}, {property: "outerHTML"}, {property: "insertAdjacentHTML"}, {object: "document", property: "write"}],
      "array-callback-return": "error",
      "no-self-compare": "error",
      "no-unreachable-loop": "error",
    },
  },
];
