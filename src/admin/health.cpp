#include "admin/health.hpp"

#include "http/store_link.hpp"

namespace idem::admin {
namespace {

using http::Task;

bool is_loopback(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1) == "[::1]";
  const auto name = host.substr(0, host.rfind(':'));
  return http::same_name(name, "localhost") || name.starts_with("127.");
}

Answer status_answer(int status, std::string_view text) {
  Answer answer{status, {}, "{\"status\":"};
  append_json_string(answer.body, text);
  answer.body += "}\n";
  answer.headers.push_back({"Content-Type", "application/json"});
  answer.headers.push_back({"Cache-Control", "no-store"});
  return answer;
}

class Health final : public http::Service {
 public:
  Health(http::Loop& loop, Store& store, const std::atomic<bool>& draining)
      : loop_(loop), store_(store), draining_(draining) {}

  Task<void> serve(http::ServerStream& client) override {
    const Answer answer = co_await answer_to(client.head());
    co_await client.answer(answer);
  }

 private:
  Task<Answer> answer_to(const http::RequestHead& head) {
    if (!is_loopback(head.host)) {
      co_return to_answer(
          {.code = ProblemCode::bad_request, .detail = "The Host is not loopback."});
    }
    const auto path = head.origin_form.substr(0, head.origin_form.find('?'));
    const bool readable = head.method == "GET" || head.method == "HEAD";
    if (readable && path == "/livez") co_return status_answer(200, "alive");
    if (!readable || path != "/readyz") co_return to_answer({.code = ProblemCode::not_found});
    if (draining_.load()) {
      co_return to_answer({.code = ProblemCode::draining, .detail = "The gateway is stopping."});
    }
    StoreCall find = Find{};
    const auto probe = co_await http::ask_store(loop_, store_, find);
    if (!probe) {
      co_return to_answer({.code = ProblemCode::store_unavailable, .detail = probe.error().detail});
    }
    co_return status_answer(200, "ready");
  }

  http::Loop& loop_;
  Store& store_;
  const std::atomic<bool>& draining_;
};

}  // namespace

std::unique_ptr<http::Service> make_health(http::Loop& loop, Store& store,
                                           const std::atomic<bool>& draining) {
  return std::make_unique<Health>(loop, store, draining);
}

}  // namespace idem::admin
