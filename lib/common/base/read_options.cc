// CLI11 parses the options. This file decides which words are options, and handles habits of shell
// users.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "base/command_line.h"
#include "base/error.h"
#include "base/text.h"

namespace fleet {
namespace {

bool looks_like_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// Whether DASHES and NAME together are this flag. Makes no copy, because there are hundreds of
// flags.
bool is_same_flag(std::string_view dashes, std::string_view name, std::string_view flag) {
  if (flag.size() != dashes.size() + name.size() || !flag.starts_with(dashes)) return false;
  flag.remove_prefix(dashes.size());
  return std::equal(name.begin(), name.end(), flag.begin(), [](char a, char b) {
    return a == b || ((a == '-' || a == '_') && (b == '-' || b == '_'));
  });
}

}  // namespace

const Option* find_flag(const std::vector<Option>& known, const std::string& flag) {
  for (const Option& option : known) {
    if (option.key_is_flag && is_same_flag("--", option.key, flag)) return &option;
    for (const std::string& alias : option.aliases) {
      const size_t dashes = std::min(alias.find_first_not_of('-'), alias.size());
      const char* missing = dashes > 0 ? "" : alias.size() == 1 ? "-" : "--";
      const std::string_view own = dashes > 0 ? std::string_view(alias).substr(0, dashes) : missing;
      if (is_same_flag(own, std::string_view(alias).substr(dashes), flag)) return &option;
    }
  }
  return nullptr;
}

namespace {

// A word that is an option, split into its parts.
struct Word {
  const Option* option = nullptr;  // nullptr: unknown
  std::string flag;                // as written
  std::string value;
  bool has_value = false;
};

Word split_option(const std::vector<Option>& known, const std::string& text) {
  const size_t equals = text.find('=');
  Word word{nullptr, text.substr(0, equals), {}, equals != std::string::npos};
  if (word.has_value) word.value = text.substr(equals + 1);
  word.option = find_flag(known, word.flag);
  const bool two_dashes = text.starts_with("--");
  if (word.option || two_dashes || word.flag.size() < 3) return word;
  if (const Option* option = find_flag(known, "-" + word.flag)) {  // -hostfile
    word.option = option;
  } else if (std::isdigit(static_cast<unsigned char>(text[2]))) {  // -t3
    const Option* letter = find_flag(known, text.substr(0, 2));
    if (letter && !letter->is_flag()) word = {letter, text.substr(0, 2), text.substr(2), true};
  }
  return word;
}

bool stands_alone(const Word& word) { return word.option->is_flag() && !word.has_value; }

// Reads the words of a line from the first to the last option.
class Reader {
 public:
  Reader(const std::vector<Option>& known, const std::vector<std::string>& words,
         PositionalWords plain, const std::function<bool(const std::string&)>& is_program)
      : known_(known), words_(words), plain_(plain), is_program_(is_program) {}

  // Returns the words that remain for CLI11: one for each of `options`.
  std::vector<std::string> read(ParsedOptions* all) {
    std::vector<std::string> left;
    for (at_ = 0; at_ < words_.size(); ++at_) {
      const std::string& text = words_[at_];
      const bool end = text == "--", is_option = !end && looks_like_option(text);
      if (end || (!is_option && plain_ == PositionalWords::kEndOptions)) {
        const auto rest = words_.begin() + static_cast<std::ptrdiff_t>(at_) + (end ? 1 : 0);
        (plain_ == PositionalWords::kEndOptions ? all->words : all->rest)
            .assign(rest, words_.end());
        break;
      }
      if (!is_option) {
        all->words.push_back(text);
        continue;
      }
      const size_t first = at_;
      const Word word = split_option(known_, text);
      if (!word.option) {
        all->bad.push_back(unknown(word));
      } else if (const auto value = value_of(word, &all->bad)) {
        if (value->empty() && word.option->never_empty) {
          all->bad.push_back({"its value is empty", word.flag,
                              "write " + word.flag + " " + word.option->value, first,
                              at_ - first + 1, std::nullopt});
          continue;
        }
        if (value->empty() && !stands_alone(word)) continue;  // an empty value counts as not given
        left.push_back("--" + word.option->key + (value->empty() ? "" : "=" + *value));
        all->options.push_back({word.option, {}, word.flag, first, at_ - first + 1});
      }
    }
    return left;
  }

 private:
  // Whether a word cannot be the value of the option before it.
  bool ends_value(const Option& option, const std::string& text) const {
    const bool is_word = text.find(' ') == std::string::npos;
    return is_known_option(text) || (option.foreign && text.starts_with("--") && is_word);
  }

  bool is_known_option(const std::string& text) const {
    if (!looks_like_option(text)) return false;
    const Option* option = split_option(known_, text).option;
    return option && !option->foreign;
  }

  // Whether the word is the program to run, and cannot be this option's value.
  bool is_program_instead(const Option& option, const std::string& word) const {
    if (!is_program_ || option.spread || (option.choices.empty() && !option.number)) return false;
    double number = 0;
    const bool fits = option.number
                          ? parse_double(word, &number)
                          : std::ranges::find(option.choices, word) != option.choices.end();
    return !fits && is_program_(word);
  }

  // Also takes the next word if the first does not contain the value. CLI11 would take the next
  // option as a missing value, and would end a list at a blank.
  std::optional<std::string> value_of(const Word& word, std::vector<BadOption>* bad) {
    const Option& option = *word.option;
    if (!option.implied.empty() && !word.has_value) return option.implied;
    std::string value = word.value;
    for (int i = word.has_value ? 1 : 0; i < option.values && !option.is_flag(); ++i) {
      if (at_ + 1 == words_.size() || ends_value(option, words_[at_ + 1]) ||
          is_program_instead(option, words_[at_ + 1])) {
        const bool equals = word.flag.starts_with("--") && option.values == 1;
        const std::string values = join(option.choices, "|");
        bad->push_back(
            {"it needs a value", word.flag,
             "write " + word.flag + (equals ? "=" : " ") + (values.empty() ? option.value : values),
             at_, 1, std::nullopt});
        return std::nullopt;
      }
      value += (i > 0 ? " " : "") + words_[++at_];
    }
    // Paddle's documentation writes --log_overwrite True. A program of that name is called `true`.
    if (stands_alone(word) && at_ + 1 < words_.size() &&
        (words_[at_ + 1] == "True" || words_[at_ + 1] == "False")) {
      value = words_[++at_];
    }
    while (option.spread && value.ends_with(',') && at_ + 1 < words_.size() &&
           !looks_like_option(words_[at_ + 1])) {
      value += words_[++at_];
    }
    return value;
  }

  // Takes its value along, so that the words behind it are parsed as intended.
  BadOption unknown(const Word& word) {
    BadOption bad{"unknown option '" + word.flag + "'", {}, {}, at_, 1, std::vector<std::string>()};
    const std::string nearest = nearest_flag(word.flag, known_);
    const Option* meant = nearest.empty() ? nullptr : find_flag(known_, nearest);
    if (meant) {
      bad.next = "did you mean '" + nearest + "'?";
      bad.instead = {nearest + (word.has_value ? "=" + word.value : "")};
    }
    if (!word.has_value && at_ + 1 < words_.size() && takes_next(meant)) {
      ++at_;
      ++bad.count;
      if (meant) bad.instead->push_back(words_[at_]);
    }
    return bad;
  }

  bool takes_next(const Option* meant) const {
    const std::string& next = words_[at_ + 1];
    if (meant) return !meant->is_flag() && !is_known_option(next);
    return plain_ == PositionalWords::kEndOptions && is_program_ && !looks_like_option(next) &&
           at_ + 2 < words_.size() && !is_program_(next);
  }

  const std::vector<Option>& known_;
  const std::vector<std::string>& words_;
  const PositionalWords plain_;
  const std::function<bool(const std::string&)>& is_program_;
  size_t at_ = 0;
};

// Parses the values, in the order of the command line.
void read_values(std::vector<std::string> left, std::vector<GivenOption>* options) {
  CLI::App app;
  app.set_help_flag();
  std::map<const Option*, CLI::Option*> added;
  for (const GivenOption& given : *options) {
    if (added.contains(given.option)) continue;
    const std::string name = "--" + given.option->key;
    added[given.option] = (given.option->is_flag() ? app.add_flag(name) : app.add_option(name))
                              ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  std::reverse(left.begin(), left.end());  // CLI11 expects the reverse order
  try {
    app.parse(left);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kUsage, error.what());
  }
  std::map<const Option*, size_t> next;
  for (GivenOption& given : *options) {
    given.value = added[given.option]->results().at(next[given.option]++);
  }
}

}  // namespace

ParsedOptions read_options(const std::vector<Option>& known, const std::vector<std::string>& words,
                           PositionalWords plain,
                           const std::function<bool(const std::string&)>& is_program) {
  ParsedOptions all;
  std::vector<std::string> left = Reader(known, words, plain, is_program).read(&all);
  read_values(std::move(left), &all.options);
  // The last occurrence counts.
  for (size_t i = all.options.size(); i-- > 0;) {
    const Option* option = all.options[i].option;
    const auto here = all.options.begin() + static_cast<std::ptrdiff_t>(i);
    if (option->repeats) continue;
    const auto later = std::find_if(here + 1, all.options.end(), [&](const GivenOption& other) {
      return other.option == option;
    });
    if (later != all.options.end()) all.options.erase(here);
  }
  return all;
}

}  // namespace fleet
