// What tests read in the HTML of a report.
#pragma once

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

namespace fleet {

// The content of each element of this kind, with its markup.
inline std::vector<std::string> elements_of(const std::string& page, const std::string& tag) {
  std::vector<std::string> contents;
  const std::string begin = "<" + tag, end = "</" + tag + ">";
  for (size_t at = 0; (at = page.find(begin, at)) != page.npos;) {
    at += begin.size();
    if (page[at] != '>' && page[at] != ' ') continue;  // a longer name
    const size_t from = page.find('>', at) + 1;
    contents.push_back(page.substr(from, page.find(end, from) - from));
  }
  return contents;
}
// A page that asks for nothing elsewhere: its tags are these, without links and handlers. Its only
// script is that which its policy allows.
inline void expect_harmless(const std::string& page) {
  const std::set<std::string> known = {
      "!doctype", "html",    "head", "meta",   "title",   "style", "body", "h1",
      "h2",       "p",       "b",    "div",    "span",    "table", "tr",   "td",
      "th",       "ul",      "li",   "pre",    "details", "svg",   "g",    "path",
      "rect",     "summary", "text", "circle", "script",  "img",   "small"};
  const std::string picture = " src=\"data:image/jpeg;base64,";
  for (size_t at = 0; (at = page.find('<', at)) != page.npos; ++at) {
    std::string tag = page.substr(at + 1, page.find('>', at) - at - 1);
    const size_t slash = tag.starts_with("/") ? 1 : 0;
    EXPECT_TRUE(known.contains(tag.substr(slash, tag.find_first_of(" />", slash) - slash))) << tag;
    if (tag.starts_with("img ") && tag.find(picture) != tag.npos) {
      tag.erase(tag.find(picture), picture.size());
    }
    EXPECT_THAT(tag, ::testing::AllOf(::testing::Not(::testing::HasSubstr("href")),
                                      ::testing::Not(::testing::HasSubstr("src=")),
                                      ::testing::Not(::testing::HasSubstr(" on"))));
  }
  EXPECT_THAT(page, ::testing::AllOf(::testing::Not(::testing::HasSubstr("url(")),
                                     ::testing::Not(::testing::HasSubstr("@import"))));
}

}  // namespace fleet
