// The page's files, page.html, page.css and page.js in this folder, as they are.
#pragma once

#include <string_view>

namespace fleet {

std::string_view page_html();
std::string_view page_css();
std::string_view page_js();

}  // namespace fleet
