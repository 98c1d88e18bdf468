// SPDX-License-Identifier: Apache-2.0
#include "cli/completion_scripts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/help_text.h"
#include "cli/option_table.h"

namespace tacet {
namespace {

std::string Join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

bool IsPath(const OptionRow& row) {
  static constexpr std::string_view kPaths[] = {"FILE", "PATH", "DIR", "FOLDER", "RUN"};
  return std::find(std::begin(kPaths), std::end(kPaths), row.value) != std::end(kPaths);
}

// The first clause, for a menu.
std::string Brief(std::string text) {
  constexpr std::string_view kDefault = " (default";
  for (size_t at = text.find(kDefault); at != std::string::npos; at = text.find(kDefault, at))
    text.erase(at, std::min(text.find(')', at), text.size() - 1) - at + 1);
  text.resize(std::min({text.find(';'), text.find(" ("), text.size()}));
  while (text.ends_with(' ') || text.ends_with(',')) text.pop_back();
  return text;
}

// Inside single quotes of a shell: ' ends them, \' is one, ' begins them again. Fish knows \' inside of them.
std::string Quoted(std::string_view text, bool fish) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += fish ? "\\'" : "'\\''";
    else if (c == '\\' && fish)
      out += "\\\\";
    else
      out += c;
  }
  return out + "'";
}

std::string BashValues(const Command& command, const OptionRow& row) {
  std::string out = "    '" + std::string(command.name) + " " + row.name + "'";
  if (row.letter != 0) out += "|'" + std::string(command.name) + " -" + std::string(1, row.letter) + "'";
  if (!row.choices.empty()) return out + ") _tacet_words '" + Join(row.choices) + "'; return ;;\n";
  if (IsPath(row)) return out + ") return ;;\n";
  return out + ") compopt +o default 2>/dev/null; return ;;\n";
}

// In zsh an explanation stands in brackets and a message between colons.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshOption(const OptionRow& row) {
  std::string names = row.name, exclusive;
  if (row.letter != 0) {
    const std::string letter = "-" + std::string(1, row.letter);
    exclusive = "(" + letter + " " + row.name + ")";
    names = "{" + letter + (row.value.empty() ? "," : "+,") + row.name + (row.value.empty() ? "}" : "=}");
  } else if (!row.value.empty()) {
    names += "=";
  }
  std::string told = "[" + ZshText(Brief(row.text)) + "]";
  if (!row.value.empty()) {
    told += ":" + ZshText(row.value) + ":";
    if (!row.choices.empty())
      told += "(" + Join(row.choices) + ")";
    else if (IsPath(row))
      told += "_files";
  }
  return (exclusive.empty() ? "" : "'" + exclusive + "'") + names + Quoted(told, false);
}

// What a command takes beside options, where it is no path.
enum class Plain { paths, causes, commands, shells };
Plain PlainOf(const Command& command) {
  if (command.name == "explain") return Plain::causes;
  if (command.name == "help") return Plain::commands;
  return command.name == "completion" ? Plain::shells : Plain::paths;
}

std::string AllNames() {
  std::string out;
  for (const std::string_view name : CommandNames()) out += (out.empty() ? "" : " ") + std::string(name);
  return out;
}

constexpr const char* kCauses =
    "tacet explain --list 2>/dev/null | grep \"^  \" | tr -s \" \" | cut -d\" \" -f2";  // without the headings

}  // namespace

std::string BashCompletion() {
  std::string values, options, plain;
  for (const Command* command : AllCommands()) {
    std::string names = "--help";
    for (const OptionRow& row : ReadOptionRows(command->help)) {
      names += " " + row.name;
      if (!row.value.empty()) values += BashValues(*command, row);
    }
    options += "      " + std::string(command->name) + ") _tacet_words '" + names + "' ;;\n";
    const Plain kind = PlainOf(*command);
    if (kind == Plain::causes) plain += "    explain) _tacet_words \"$(" + std::string(kCauses) + ")\" ;;\n";
    if (kind == Plain::commands) plain += "    help) _tacet_words '" + AllNames() + " environment' ;;\n";
    if (kind == Plain::shells) plain += "    completion) _tacet_words 'bash zsh fish' ;;\n";
  }
  return R"(# bash completion of tacet: source <(tacet completion bash)
_tacet_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }
_tacet() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= i
  COMPREPLY=()
  # --format=js arrives as three words.
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -- ]] && return
    [[ -z $command && ${COMP_WORDS[i]} != -* ]] && command=${COMP_WORDS[i]}
  done
  if [[ -z $command ]]; then
    _tacet_words ')" +
         AllNames() + R"( --help --version'
    return
  fi
  case "$command $prev" in
)" + values +
         R"(  esac
  if [[ $cur == -* ]]; then
    case $command in
)" + options +
         R"(    esac
    return
  fi
  case $command in
)" + plain +
         R"(  esac
}
complete -o default -F _tacet tacet
)";
}

std::string ZshCompletion() {
  std::string commands, cases;
  for (const Command* command : AllCommands()) {
    commands += "    " + Quoted(ZshText(command->name) + ":" + std::string(command->summary), false) + "\n";
    cases += "        " + std::string(command->name) + ")\n          _arguments -s \\\n";
    for (const OptionRow& row : ReadOptionRows(command->help)) cases += "            " + ZshOption(row) + " \\\n";
    switch (PlainOf(*command)) {
      case Plain::paths: cases += "            '*:path:_files' ;;\n"; break;
      case Plain::causes: cases += "            \"*:cause:($(" + std::string(kCauses) + "))\" ;;\n"; break;
      case Plain::commands: cases += "            '1:command:(" + AllNames() + " environment)' ;;\n"; break;
      case Plain::shells: cases += "            '1:shell:(bash zsh fish)' ;;\n"; break;
    }
  }
  return R"(#compdef tacet
# zsh completion of tacet: put it as _tacet into a folder of $fpath
_tacet() {
  local curcontext=$curcontext state line
  local -a commands
  commands=(
)" + commands +
         R"(  )
  _arguments -C '(-h --help)'{-h,--help}'[lists the commands]' '(-V --version)'{-V,--version}'[version, commit, compiler]' \
    '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $words[1] in
)" + cases +
         R"(      esac ;;
  esac
}
if [ "$funcstack[1]" = _tacet ]; then _tacet "$@"; else compdef _tacet tacet; fi
)";
}

std::string FishCompletion() {
  std::string out = "# fish completion of tacet: tacet completion fish | source\n";
  out += "complete -c tacet -n __fish_use_subcommand -f\n";
  out += "complete -c tacet -n __fish_use_subcommand -s V -l version -d 'version, commit, compiler'\n";
  for (const Command* command : AllCommands()) {
    const std::string name(command->name);
    const std::string seen = "complete -c tacet -n '__fish_seen_subcommand_from " + name + "'";
    out += "complete -c tacet -n __fish_use_subcommand -a " + name + " -d " + Quoted(command->summary, true) + "\n";
    for (const OptionRow& row : ReadOptionRows(command->help)) {
      out += seen;
      if (row.letter != 0) out += " -s " + std::string(1, row.letter);
      out += " -l " + row.name.substr(2);
      if (!row.value.empty()) out += IsPath(row) ? " -r -F" : " -x";
      if (!row.choices.empty()) out += " -a '" + Join(row.choices) + "'";
      out += " -d " + Quoted(Brief(row.text), true) + "\n";
    }
    switch (PlainOf(*command)) {
      case Plain::paths: break;
      case Plain::causes: out += seen + " -f -a '(" + std::string(kCauses) + ")'\n"; break;
      case Plain::commands: out += seen + " -f -a '" + AllNames() + " environment'\n"; break;
      case Plain::shells: out += seen + " -f -a 'bash zsh fish'\n"; break;
    }
  }
  return out;
}

}  // namespace tacet
