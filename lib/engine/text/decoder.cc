#include "text/decoder.h"

#include <utility>

#include "base/error.h"
#include "text/part_options.h"
#include "text/replacement.h"
#include "text/text_splitter.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

using Tokens = std::vector<std::string>;

std::string joined(const Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::string result;
  size_t at = 0;
  for (size_t found; (found = text.find(from, at)) != std::string::npos;) {
    result.append(text, at, found - at);
    result += to;
    at = found + from.size();
  }
  result.append(text, at, std::string::npos);
  text = std::move(result);
}

// A token with a character out of the alphabet, such as an added one, stands for itself.
Tokens decode_byte_level(const Tokens& tokens) {
  std::string all, bytes;
  for (const std::string& token : tokens) all += byte_level_bytes(token, bytes) ? bytes : token;
  return {valid_utf8(all)};
}

// -1: not "<0x0A>"
int fallback_byte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

// Bytes in a row that are not UTF-8 as a whole become one U+FFFD each.
Tokens decode_byte_fallback(const Tokens& tokens) {
  Tokens result;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (is_valid_utf8(bytes)) {
      result.push_back(bytes);
    } else {
      for (size_t i = 0; i < bytes.size(); ++i) result.push_back("\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    const int byte = fallback_byte(token);
    if (byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
      continue;
    }
    flush();
    result.push_back(token);
  }
  flush();
  return result;
}

void clean_up(std::string& text) {
  static constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kChanges) replace_all(text, from, to);
}

Tokens decode_word_piece(Tokens tokens, const std::string& prefix, bool cleans) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    if (i > 0) {
      if (!prefix.empty() && token.starts_with(prefix)) {
        token.erase(0, prefix.size());
      } else {
        token.insert(0, " ");
      }
    }
    if (cleans) clean_up(token);
  }
  return tokens;
}

Tokens decode_metaspace(Tokens tokens, const std::string& mark, bool prepended) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    replace_all(tokens[i], mark, i == 0 && prepended ? "" : " ");
  }
  return tokens;
}

Tokens strip_tokens(Tokens tokens, const std::string& content, size_t start, size_t stop) {
  for (std::string& token : tokens) {
    std::string_view rest = token;
    for (size_t i = 0; i < start && rest.starts_with(content); ++i) {
      rest.remove_prefix(content.size());
    }
    for (size_t i = 0; i < stop && rest.ends_with(content); ++i) {
      rest.remove_suffix(content.size());
    }
    token = std::string(rest);
  }
  return tokens;
}

}  // namespace

Decoder::Decoder(const Json& json, const std::string& where) : spaces_(json.is_null()) {
  if (!json.is_null()) add(json, where, 0);
}

Decoder Decoder::of_bytes() { return {}; }

void Decoder::add(const Json& json, const std::string& where, int depth) {
  const PartOptions options(json, "decoder", where);
  const std::string& type = options.type();
  if (type == "Sequence") {
    if (depth > 20) options.refuse("more than 20 nested sequences");
    for (const Json& part : options.list("decoders")) add(part, where, depth + 1);
  } else if (type == "ByteLevel") {
    steps_.push_back(decode_byte_level);
  } else if (type == "ByteFallback") {
    steps_.push_back(decode_byte_fallback);
  } else if (type == "Fuse") {
    steps_.push_back([](const Tokens& tokens) { return Tokens{joined(tokens)}; });
  } else if (type == "Replace") {
    steps_.push_back([replacement = Replacement(options)](Tokens tokens) {
      for (std::string& token : tokens) token = replacement.apply(token);
      return tokens;
    });
  } else if (type == "Strip") {
    const std::string content = options.text("content");
    if (content.empty()) options.wrong("content", "a character");
    const auto start = static_cast<size_t>(options.number("start", 0, 0));
    const auto stop = static_cast<size_t>(options.number("stop", 0, 0));
    steps_.push_back(
        [=](Tokens tokens) { return strip_tokens(std::move(tokens), content, start, stop); });
  } else if (type == "WordPiece") {
    steps_.push_back([prefix = options.text("prefix", "##"),
                      cleans = options.flag("cleanup", true)](Tokens tokens) {
      return decode_word_piece(std::move(tokens), prefix, cleans);
    });
  } else if (type == "Metaspace") {
    const std::string scheme =
        options.text("prepend_scheme", options.flag("add_prefix_space", true) ? "always" : "never");
    steps_.push_back([mark = options.text("replacement", "\xE2\x96\x81"),
                      prepended = scheme != "never"](Tokens tokens) {
      return decode_metaspace(std::move(tokens), mark, prepended);
    });
  } else if (type == "BPEDecoder") {
    steps_.push_back([suffix = options.text("suffix", "</w>")](Tokens tokens) {
      for (size_t i = 0; i < tokens.size(); ++i) {
        replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
      }
      return tokens;
    });
  } else {
    options.refuse_type();
  }
}

std::string Decoder::decode(std::vector<std::string> tokens) const {
  if (spaces_) {
    for (size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
  }
  for (const Step& step : steps_) tokens = step(std::move(tokens));
  return valid_utf8(joined(tokens));
}

}  // namespace fleet::text
