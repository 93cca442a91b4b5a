// CLI11 reads the options. Which words are options, and three habits of shells' users, are ours.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/command_line.h"
#include "base/error.h"
#include "base/text.h"

namespace fleet {
namespace {

bool looks_like_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// "--gpus=0,1": "--gpus"; "-t3": "-t".
std::string flag_of(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

const Option* named(const std::vector<Option>& known, const std::string& word) {
  for (const Option& option : known) {
    const std::vector<std::string> flags = option.flags();
    if (std::find(flags.begin(), flags.end(), flag_of(word)) != flags.end()) return &option;
  }
  return nullptr;
}

// The option at `at` with its value in one word; `at` moves to the last word that belongs to it.
// CLI11 would take the next option for a value that is missing, and end a list at a blank.
std::string whole_option(const std::vector<Option>& known, const Option& option,
                         const std::vector<std::string>& words, size_t* at) {
  std::string word = words[*at];
  if (!option.is_flag() && word == flag_of(word)) {
    if (*at + 1 == words.size() || named(known, words[*at + 1])) {
      throw Error(ErrorCode::kUsage, "it needs a value", word,
                  "write " + word + "=" + option.value);
    }
    word = "--" + option.key + "=" + words[++*at];
  }
  while (option.spread && word.ends_with(',') && *at + 1 < words.size() &&
         !looks_like_option(words[*at + 1])) {
    word += words[++*at];
  }
  return word;
}

// Takes the words apart; what is left for CLI11.
std::vector<std::string> option_words(const std::vector<Option>& known,
                                      const std::vector<std::string>& words, PlainWord plain,
                                      OptionWords* all) {
  std::vector<std::string> left;
  for (size_t at = 0; at < words.size(); ++at) {
    const bool end = words[at] == "--", is_option = !end && looks_like_option(words[at]);
    if (end || (!is_option && plain == PlainWord::kEndsOptions)) {
      const auto rest = words.begin() + static_cast<std::ptrdiff_t>(at) + (end ? 1 : 0);
      (plain == PlainWord::kEndsOptions ? all->words : all->rest).assign(rest, words.end());
      break;
    }
    const Option* option = is_option ? named(known, words[at]) : nullptr;
    if (!is_option) {
      all->words.push_back(words[at]);
    } else if (!option) {
      left.push_back(words[at]);
    } else if (const std::string word = whole_option(known, *option, words, &at);
               word != flag_of(word) + "=") {  // an empty value is none
      left.push_back(word);
    }
  }
  return left;
}

}  // namespace

OptionWords read_options(const std::vector<Option>& known, const std::vector<std::string>& words,
                         PlainWord plain, const std::function<void(const std::string&)>& unknown) {
  OptionWords all;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  for (const Option& option : known) {
    const std::string names = join(option.flags(), ",");
    (option.is_flag() ? app.add_flag(names) : app.add_option(names))
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  std::vector<std::string> left = option_words(known, words, plain, &all);
  std::reverse(left.begin(), left.end());  // as CLI11 wants them
  try {
    app.parse(left);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kUsage, error.what());
  }
  for (const std::string& word : app.remaining()) unknown(word);
  for (const Option& option : known) {
    const CLI::Option* given = app.get_option("--" + option.key);
    if (given->count() > 0) all.options.push_back({&option, given->results().back()});
  }
  return all;
}

}  // namespace fleet
