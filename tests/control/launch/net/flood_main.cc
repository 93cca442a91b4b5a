// A stranger that floods a port: launch_flood HOST:PORT HALF WHOLE. HALF connections begin a TLS
// greeting and stay silent; over WHOLE others, eight at a time, it greets to the end, without a
// certificate. Prints how many of those were answered.
#include <netdb.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/thread.h"
#include "transport/certificates.h"

namespace {

fleet::UniqueFd begin_greeting(const addrinfo& where) {
  fleet::UniqueFd fd(::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  constexpr char kClientHello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
  if (::connect(fd.get(), where.ai_addr, where.ai_addrlen) == 0) {
    (void)::send(fd.get(), kClientHello, sizeof kClientHello - 1, MSG_NOSIGNAL);
  }
  return fd;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "launch_flood HOST:PORT HALF WHOLE\n"), 2;
  const std::string address = argv[1];
  const size_t colon = address.rfind(':');
  addrinfo hints{}, *where = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints,
                    &where) != 0)
    return 2;
  std::vector<fleet::UniqueFd> half;
  for (int i = 0; i < std::atoi(argv[2]); ++i) half.push_back(begin_greeting(*where));
  std::atomic<int> left{std::atoi(argv[3])}, answered{0}, turned_away{0};
  {
    std::vector<fleet::Thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back("stranger", [&] {
        while (left-- > 0) {
          const auto listener = fleet::probe_listener(address, std::chrono::seconds(10));
          ++(listener.kind == fleet::Listener::Kind::kTls ? answered : turned_away);
        }
      });
    }
  }
  std::printf("flood: %d greetings were answered, %d turned away\n", answered.load(),
              turned_away.load());
  ::freeaddrinfo(where);
}
