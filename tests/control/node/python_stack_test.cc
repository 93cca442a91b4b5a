#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>

#include "node/stack_collector.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPySpy[] = R"json(Warning: something
[
  {
    "pid": 12, "thread_id": 1, "thread_name": "Thread-1 (read)",
               "os_thread_id" : 13, "active" : false,
               "owns_gil" : false,
               "frames" : [ {"name" : "read", "filename" : "/x/reader.py", "line" : 7} ]
},
  {
    "pid": 12, "thread_id": 2, "thread_name": "MainThread", "os_thread_id": 12,
    "active": true, "owns_gil": true,
    "frames": [
      {"name": "step", "filename": "/data/train.py", "module": null,
       "short_filename": "train.py", "line": 12, "locals": null},
      {"name": "<module>", "filename": "/data/train.py", "line": 30}
    ]
  }
])json";

TEST(PythonFrames, PySpy_TheMainThreadInnermostFirst) {
  const PythonFrames found = python_frames_of(PythonDebugger::kPySpy, kPySpy, 12);
  EXPECT_THAT(found.frames,
              ElementsAre("step (/data/train.py:12)", "<module> (/data/train.py:30)"));
  EXPECT_EQ(found.missing, "");
}

TEST(PythonFrames, PySpyThatFails_SaysWhyInOneLine) {
  const PythonFrames found = python_frames_of(
      PythonDebugger::kPySpy,
      "Error: Failed to get process executable name.\n\nCaused by:\n    0: Permission denied\n",
      12);
  EXPECT_THAT(found.frames, IsEmpty());
  EXPECT_THAT(found.missing, HasSubstr("Failed to get process executable name."));
}

TEST(PythonFrames, AnythingElse_IsNoStackAndNoCrash) {
  for (const std::string printed :
       {"", "[", "[]", "[\n]", "[\n1, 2]", "[\n{\"thread_name\": \"MainThread\"}]",
        "[\n{\"thread_name\": \"MainThread\", \"frames\": [3]}]",
        "[\n{\"thread_name\": 5, \"os_thread_id\": 12, \"frames\": {}}]", "{\"a\": 1}"}) {
    const PythonFrames found = python_frames_of(PythonDebugger::kPySpy, printed, 12);
    EXPECT_THAT(found.frames, IsEmpty()) << printed;
    EXPECT_THAT(found.missing, HasSubstr("py-spy printed no Python stack")) << printed;
  }
  const PythonFrames odd = python_frames_of(
      PythonDebugger::kPySpy,
      "[\n{\"os_thread_id\": 12, \"frames\": [{\"name\": 7, \"line\": \"x\"}]}]", 12);
  EXPECT_THAT(odd.frames, ElementsAre("? (?:0)"));
}

TEST(PythonFrames, DeepStack_IsCut) {
  std::string printed = "[\n{\"os_thread_id\": 12, \"frames\": [";
  for (int i = 0; i < 1000; ++i) {
    printed += std::string(i ? "," : "") +
               "{\"name\": \"f\", \"filename\": \"a.py\", \"line\": " + std::to_string(i) + "}";
  }
  EXPECT_EQ(python_frames_of(PythonDebugger::kPySpy, printed + "]}]", 12).frames.size(), 24u);
}

TEST(PythonFrames, Gdb_TheTraceback) {
  const PythonFrames found = python_frames_of(
      PythonDebugger::kGdb,
      "[Thread debugging using libthread_db enabled]\nTraceback (most recent call first):\n"
      "  <built-in method sleep of module object at remote 0x7f12>\n"
      "  File \"/tmp/hang.py\", line 3, in inner\n    time.sleep(1000)\n"
      "  File \"/tmp/hang.py\", line 6, in <module>\n    inner()\n",
      12);
  EXPECT_THAT(found.frames, ElementsAre("inner (/tmp/hang.py:3)", "<module> (/tmp/hang.py:6)"));
  EXPECT_THAT(
      python_frames_of(PythonDebugger::kGdb, "Undefined command: \"py-bt\".  Try \"help\".\n", 12)
          .missing,
      HasSubstr("pip install py-spy"));
}

TEST(RunsPython, OnlyAnInterpreterDoes) {
  EXPECT_FALSE(runs_python(::getpid()));
  EXPECT_FALSE(runs_python(INT_MAX));
}

}  // namespace
}  // namespace fleet
