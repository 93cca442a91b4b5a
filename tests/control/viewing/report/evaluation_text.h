// A file evaluation.json, for tests of reports.
#pragma once

#include <algorithm>
#include <string>

namespace fleet {

// Of `classes` classes, with a part of everything.
inline std::string evaluation_text(int classes, const std::string& picture) {
  const auto list = [&](const std::string& value) {
    std::string text = "[";
    for (int c = 0; c < classes; ++c) text += (c > 0 ? "," : "") + value;
    return text + "]";
  };
  std::string names = "[";
  for (int c = 0; c < classes; ++c) {
    names += (c > 0 ? ",\"" : "\"") + std::string("<class> ") + std::to_string(c) + "\"";
  }
  const int side = std::min(classes, 40);
  std::string shown, counts, curves, calibration, worst;
  for (int c = 0; c < side; ++c) shown += (c > 0 ? "," : "") + std::to_string(c);
  for (int c = 0; c < side * side; ++c) counts += (c > 0 ? "," : "") + std::to_string(c % 7);
  for (int c = 0; c < std::min(classes, 8); ++c) {
    curves +=
        (c > 0 ? "," : "") + std::string(R"({"class":)") + std::to_string(c) + R"(,"points":[)";
    for (int p = 0; p < 100; ++p) curves += p > 0 ? ",0.012345,0.123456,0.234567,0.5" : "0,0,0.1,1";
    curves += "]}";
  }
  for (int b = 0; b < 15; ++b) calibration += (b > 0 ? "," : "") + std::string("5,0.5,0.4");
  for (int w = 0; w < 16; ++w) {
    worst += (w > 0 ? "," : "") + std::string(R"({"loss":3,"expected":[1],"predicted":[0],)") +
             R"("probability":0.9,"name":"photos/<b>.jpg","jpeg":")" + picture + R"("})";
  }
  return R"({"step":20,"epoch":1,"exclusive":true,"samples":70,"support":)" + list("7") +
         R"(,"predicted":)" + list("7") + R"(,"precision":)" + list("0.25") + R"(,"recall":)" +
         list("0.5") + R"(,"f1":)" + list("0.3333") + R"(,"auroc":)" + list("null") + R"(,"ap":)" +
         list("0.75") + R"(,"curves":[)" + curves + R"(],"confusion":{"classes":[)" + shown +
         R"(],"counts":[)" + counts + R"(]},"calibration":[)" + calibration + R"(],"names":)" +
         names + R"(],"worst":[)" + worst + "]}\n";
}

}  // namespace fleet
