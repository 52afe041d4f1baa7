#include <idem/adapters/httplib.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

// A foreign service on cpp-httplib, whose objects must be as large as its library expects
// them to be: nothing behind them changes.
int main() {
  struct Behind {
    httplib::Server server;
    httplib::Request request;
    httplib::Response response;
    unsigned char mark[4096];
  };
  const auto memory = std::make_unique<Behind>();
  std::ranges::fill(memory->mark, 0xA5);
  {
    Behind& one = *memory;
    one.server.Post("/pay", [](const httplib::Request& http, httplib::Response& answer) {
      idem::to_http({201, {}, idem::to_idem(http, "acme")->body}, answer);
    });
    one.request.method = "POST";
    one.request.body = "5";
    one.request.headers.emplace("Content-Length", "1");
    const auto asked = idem::to_idem(one.request, "acme");
    idem::to_http({201, {{"Location", "/1"}}, asked ? "paid " + asked->body : "refused"},
                  one.response);
  }
  const bool is_whole = std::ranges::all_of(memory->mark, [](auto c) { return c == 0xA5; });
  std::printf("%d %s %s\n", memory->response.status, memory->response.body.c_str(),
              is_whole ? "whole" : "written over");
  return 0;
}
