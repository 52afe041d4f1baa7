#include <idem/adapters/beast.hpp>
#include <idem/adapters/httplib.hpp>
#include <idem/guard.hpp>
#include <idem/open_store.hpp>

#include <fmt/format.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <latch>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "support/back_off.hpp"
#include "support/http_client.hpp"
#include "support/problem.hpp"
#include "support/temp_dir.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// Debian's cpp-httplib is not built for it: of what happens in there it sees the half.
extern "C" const char* __tsan_default_suppressions() { return "race:libcpp-httplib"; }
#endif
#endif

/// A guard behind each HTTP server that there is an adapter for, over real sockets.
namespace idem::test {
namespace {

using Serve = std::function<idem::Response(const idem::Request&)>;

class HttplibService {
 public:
  explicit HttplibService(Serve serve) {
    server_.set_payload_max_length(64UL * 1024 * 1024);
    server_.set_keep_alive_max_count(100);
    const auto handle = [serve](const httplib::Request& http, httplib::Response& out) {
      const auto request = to_idem(http, http.get_header_value("X-Tenant-Id"));
      to_http(request ? serve(*request) : request.error(), out);
    };
    server_.Post(".*", handle);
    server_.Get(".*", handle);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) back_off();
  }
  ~HttplibService() {
    server_.stop();
    thread_.join();
  }
  int port() const { return port_; }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

class BeastService {
 public:
  explicit BeastService(Serve serve)
      : serve_(std::move(serve)), acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}) {
    accepting_ = std::thread([this] {
      for (;;) {
        boost::system::error_code error;
        auto& socket = sockets_.emplace_back(io_);
        acceptor_.accept(socket, error);
        if (error || ending_) return;
        serving_.emplace_back([this, &socket] { converse(socket); });
      }
    });
  }
  ~BeastService() {
    ending_ = true;
    boost::asio::ip::tcp::socket last(io_);
    last.connect(acceptor_.local_endpoint());
    accepting_.join();
    for (auto& socket : sockets_) ::shutdown(socket.native_handle(), SHUT_RDWR);
    for (auto& one : serving_) one.join();
  }
  int port() const { return acceptor_.local_endpoint().port(); }

 private:
  void converse(boost::asio::ip::tcp::socket& socket) {
    namespace http = boost::beast::http;
    boost::beast::flat_buffer buffer;
    for (;;) {
      boost::system::error_code error;
      http::request_parser<http::string_body> parser;
      parser.body_limit(64UL * 1024 * 1024);
      http::read(socket, buffer, parser, error);
      if (error) break;
      const auto& in = parser.get();
      http::response<http::string_body> out{http::status::ok, in.version()};
      out.keep_alive(in.keep_alive());
      to_http(serve_(to_idem(in, in["X-Tenant-Id"])), out, in.method() == http::verb::head);
      http::write(socket, out, error);
      if (error || !out.keep_alive()) break;
    }
    ::shutdown(socket.native_handle(), SHUT_RDWR);
  }

  Serve serve_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::atomic<bool> ending_ = false;
  std::list<boost::asio::ip::tcp::socket> sockets_;
  std::list<std::thread> serving_;
  std::thread accepting_;
};

// Within a template GCC 12 gives up on it.
GuardOptions waiting() { return {.operation = "create-payment", .wait = std::chrono::seconds(30)}; }

template <class Service>
class Adapter : public testing::Test {
 protected:
  Adapter() {
    auto store = open_store("sqlite:" + (dir_.path() / "service.db").string(), {});
    EXPECT_TRUE(store) << store.error();
    engine_ = std::make_unique<Engine>(std::move(*store));
    EXPECT_TRUE(engine_->transactions()->run("CREATE TABLE payments (request BLOB, target TEXT)"));
    guard_ = std::make_unique<Guard>(*engine_, waiting());
    service_ = std::make_unique<Service>([this](const idem::Request& request) {
      if (request.method == "GET" || request.method == "HEAD") return answer_;
      return guard_->serve_in_transaction(request, [&](Transaction& tx) -> Outcome {
        tx.run("INSERT INTO payments VALUES ($1, $2)", {SqlBytes{request.body}, request.target});
        return answer_;
      });
    });
    address_ = fmt::format("127.0.0.1:{}", service_->port());
  }

  static Request payment(std::string_view key, std::string body = R"({"amount":5})") {
    return {.target = "/payments",
            .fields = {{"X-Tenant-Id", "acme"},
                       {"Content-Type", "application/json"},
                       {"Idempotency-Key", std::string(key)}},
            .body = std::move(body)};
  }
  Response ask(const Request& request) { return send_once(address_, request); }
  SqlRows rows(std::string_view sql = "SELECT request, target FROM payments") {
    const auto found = engine_->transactions()->run(sql);
    EXPECT_TRUE(found) << found.error();
    return found.value_or(SqlRows{});
  }
  std::size_t payments() { return rows().size(); }

  TempDir dir_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Guard> guard_;
  idem::Response answer_{201, {{"Location", "/payments/p1"}}, R"({"id":"p1"})"};
  std::unique_ptr<Service> service_;
  std::string address_;
};

using Services = testing::Types<HttplibService, BeastService>;
struct ServiceName {
  template <class Service>
  static std::string GetName(int) {
    return std::is_same_v<Service, HttplibService> ? "httplib" : "beast";
  }
};
TYPED_TEST_SUITE(Adapter, Services, ServiceName);

TYPED_TEST(Adapter, S14_a_retry_gets_the_answer_byte_for_byte_and_nothing_is_done_twice) {
  this->answer_.headers = {
      {"Location", "/payments/p1"}, {"Link", "</a>; rel=a"},
      {"Link", "</b>; rel=b"},      {"link", "</a>; rel=c"},
      {"Link", "</d>; rel=d"},      {"Content-Type", "text/plain; charset=utf-8"},
      {"content-length", "3"},      {"transfer-encoding", "chunked"},
      {"Connection", "close"},      {"Date", "Thu, 01 Jan 1970 00:00:00 GMT"}};
  this->answer_.body = std::string("a\0b\r\n\r\nHTTP/1.1 200 OK\r\n\xff", 25);
  const auto first = this->ask(this->payment("k"));
  EXPECT_EQ(first.status, 201) << first.raw << first.trouble;
  EXPECT_FALSE(first.get("Idempotent-Replayed"));
  const auto again = this->ask(this->payment("k"));
  EXPECT_EQ(again.get("Idempotent-Replayed"), "true");
  for (const auto& answer : {first, again}) {
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer.body, this->answer_.body);
    EXPECT_EQ(answer.get("Location"), "/payments/p1");
    EXPECT_EQ(answer.get("Idempotency-Outcome"), "stored");
    EXPECT_EQ(answer.get("Content-Type"), "text/plain; charset=utf-8");
    EXPECT_EQ(answer.count("Content-Type"), 1U);
    EXPECT_EQ(answer.count("Content-Length"), 1U);
    EXPECT_EQ(answer.count("Transfer-Encoding"), 0U);
    EXPECT_NE(answer.get("Date"), "Thu, 01 Jan 1970 00:00:00 GMT");
    std::vector<std::string> links;
    for (const auto& field : answer.fields) {
      if (same_name(field.name, "Link")) links.push_back(field.value);
    }
    EXPECT_EQ(links, (std::vector<std::string>{"</a>; rel=a", "</b>; rel=b", "</a>; rel=c",
                                               "</d>; rel=d"}));
  }
  EXPECT_EQ(this->payments(), 1U);
}

// A fingerprint that covers such a field depends on it (add_chosen_headers), whichever other fields
// a retry has: many of them make a hash table grow in between. (cpp-httplib 0.18 takes 100.)
TYPED_TEST(Adapter, S10_lines_of_one_field_keep_their_order) {
  std::mutex mutex;
  std::vector<std::string> seen;
  TypeParam service([&](const idem::Request& request) {
    const std::lock_guard lock(mutex);
    for (const auto& field : request.headers) {
      if (adapters::same_name(field.name, "Via")) seen.push_back(field.name + "=" + field.value);
    }
    return this->answer_;
  });
  for (const int others : {0, 1, 5, 14}) {
    auto request = this->payment("k");
    std::vector<std::string> sent;
    for (int i = 0; i < 6; ++i) {
      request.fields.push_back({i % 2 == 0 ? "Via" : "via", std::to_string(i * i % 5)});
      sent.push_back(request.fields.back().name + "=" + request.fields.back().value);
      for (int j = 0; j < others; ++j) {
        request.fields.push_back({fmt::format("X-{}-{}", i, j), "x"});
      }
    }
    EXPECT_EQ(send_once(fmt::format("127.0.0.1:{}", service.port()), request).status, 201);
    const std::lock_guard lock(mutex);
    EXPECT_EQ(std::exchange(seen, {}), sent) << others;
  }
}

TYPED_TEST(Adapter, V02_another_body_query_or_tenant_is_another_request) {
  EXPECT_EQ(this->ask(this->payment("k")).status, 201);
  EXPECT_TRUE(is_problem(this->ask(this->payment("k", "{}")), 422, "key_reused"));
  auto request = this->payment("k");
  request.target = "/payments?a=%20b+c&a=";
  EXPECT_TRUE(is_problem(this->ask(request), 422, "key_reused"));
  request.fields[2].value = "k2";
  EXPECT_EQ(this->ask(request).status, 201);
  EXPECT_EQ(this->ask(request).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(std::get<std::string>(this->rows().at(1).at(1)), request.target) << "as it came";
  auto of_another = this->payment("k");
  of_another.fields[0].value = "globex";
  EXPECT_FALSE(this->ask(of_another).get("Idempotent-Replayed"));
  EXPECT_EQ(this->payments(), 3U);
}

TYPED_TEST(Adapter, S08_no_key_two_keys_and_no_tenant_are_refused) {
  auto request = this->payment("k");
  request.fields.push_back({"idempotency-key", "k"});
  EXPECT_TRUE(is_problem(this->ask(request), 400, "key_invalid"));
  request.fields.resize(2);
  EXPECT_TRUE(is_problem(this->ask(request), 400, "key_missing"));
  request = this->payment("k");
  request.fields[0].value.clear();
  EXPECT_TRUE(is_problem(this->ask(request), 401, "scope_missing"));
  EXPECT_EQ(this->payments(), 0U);
}

TYPED_TEST(Adapter, S10_a_body_counts_with_every_byte_whatever_they_are) {
  std::string large(3UL * 1024 * 1024, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 >> 3);
  for (auto body : {large, std::string("\0\0a\0", 4), std::string()}) {
    auto request = this->payment(fmt::format("k{}", body.size()), body);
    request.fields[1].value = "application/octet-stream";
    EXPECT_EQ(this->ask(request).status, 201);
    EXPECT_EQ(this->ask(request).get("Idempotent-Replayed"), "true");
    EXPECT_TRUE(std::get<SqlBytes>(this->rows().back().at(0)).bytes == body) << body.size();
    request.body += '\0';
    EXPECT_TRUE(is_problem(this->ask(request), 422, "key_reused"));
  }
  EXPECT_EQ(this->payments(), 3U);
}

TYPED_TEST(Adapter, P09_one_connection_serves_many_and_http_1_0_closes) {
  Connection connection(this->address_);
  for (int i = 0; i < 3; ++i) {
    const auto answer = connection.exchange(this->payment("k"));
    EXPECT_EQ(answer.status, 201) << answer.trouble;
    EXPECT_EQ(answer.get("Idempotent-Replayed").has_value(), i > 0);
  }
  Connection old(this->address_);
  old.send_raw(
      "POST /payments HTTP/1.0\r\nX-Tenant-Id: acme\r\nContent-Type: application/json\r\n"
      "Idempotency-Key: k\r\nContent-Length: 12\r\n\r\n{\"amount\":5}");
  const std::string all = old.read_until_close();
  EXPECT_NE(all.find(" 201 "), all.npos) << all;
  EXPECT_NE(all.find("Idempotent-Replayed: true"), all.npos);
  EXPECT_TRUE(all.ends_with(this->answer_.body)) << all;
  EXPECT_EQ(this->payments(), 1U);
}

TYPED_TEST(Adapter, P10_an_answer_without_content_gets_none_and_the_connection_goes_on) {
  Connection connection(this->address_);
  for (const int status : {204, 304}) {
    this->answer_.status = status;
    for (int i = 0; i < 2; ++i) {
      const auto answer = connection.exchange(this->payment(fmt::format("k{}", status)));
      EXPECT_EQ(answer.status, status) << answer.trouble;
      EXPECT_EQ(answer.body, "");
      EXPECT_EQ(answer.get("Idempotent-Replayed").has_value(), i > 0);
    }
  }
  this->answer_.status = 200;
  connection.send({.method = "HEAD", .target = "/payments", .fields = {{"X-Tenant-Id", "acme"}}});
  const auto head = connection.read_response(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.get("Content-Length"), std::to_string(this->answer_.body.size()));
  const auto whole = connection.exchange(
      {.method = "GET", .target = "/payments", .fields = {{"X-Tenant-Id", "acme"}}});
  EXPECT_EQ(whole.body, this->answer_.body) << whole.trouble;
  EXPECT_EQ(whole.get("Content-Type"), "application/json");
}

TYPED_TEST(Adapter, V01_of_eight_clients_at_once_one_pays_and_all_get_its_answer) {
  constexpr int clients = 8;
  std::latch together(clients);
  std::vector<std::thread> threads;
  std::atomic<int> fresh = 0;
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&] {
      Connection connection(this->address_);
      together.arrive_and_wait();
      const auto answer = connection.exchange(this->payment("k"));
      EXPECT_EQ(answer.status, 201) << answer.raw;
      EXPECT_EQ(answer.body, this->answer_.body);
      if (!answer.get("Idempotent-Replayed")) ++fresh;
    });
  }
  for (auto& one : threads) one.join();
  EXPECT_EQ(fresh, 1);
  EXPECT_EQ(this->payments(), 1U);
}

using OfHttplib = Adapter<HttplibService>;

// Their bytes are gone before anybody sees them: two payments would look like one.
TEST_F(OfHttplib, S10_a_body_that_cannot_be_had_as_it_came_is_refused) {
  auto request =
      payment("k", "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n5\r\n--x--\r\n");
  request.fields[1].value = "multipart/form-data; boundary=x";
  EXPECT_EQ(ask(request).status, 415);
  request = payment("k", "\x1f\x8b");  // Its beginning.
  request.fields.push_back({"Content-Encoding", "gzip"});
  EXPECT_EQ(ask(request).status, 415);
  EXPECT_EQ(payments(), 0U);
}

// Which of them cpp-httplib reads depends on its version.
TEST_F(OfHttplib, S10_a_body_is_had_as_it_came_or_refused) {
  std::mutex mutex;
  std::vector<std::string> seen;
  HttplibService service([&](const idem::Request& request) {
    const std::lock_guard lock(mutex);
    seen.push_back(request.body);
    return answer_;
  });
  // The bodies that the service saw: one, or none and a refusal.
  const auto bodies = [&](std::string_view method, std::string_view rest, bool is_ended = false) {
    Connection connection(fmt::format("127.0.0.1:{}", service.port()));
    connection.send_raw(
        fmt::format("{} /payments HTTP/1.1\r\nHost: h\r\nX-Tenant-Id: acme\r\n"
                    "Connection: close\r\n{}",
                    method, rest));
    if (is_ended) connection.socket().half_close();
    const std::string all = connection.read_until_close();
    const std::lock_guard lock(mutex);
    // If it sees that the client has ended the connection, it sends no answer.
    if (!is_ended) {
      EXPECT_EQ(all.find(" 415 ") != all.npos, seen.empty()) << method << rest << all;
    }
    return std::exchange(seen, {});
  };
  using Bodies = std::vector<std::string>;
  const std::string_view sized = "Content-Length: 1\r\n\r\nx";
  const std::string_view chunked = "Transfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
  for (const auto rest : {sized, chunked}) {
    EXPECT_EQ(bodies("POST", rest), Bodies{"x"});
    const auto got = bodies("GET", rest);
    EXPECT_TRUE(got.empty() || got == Bodies{"x"}) << rest;
  }
  EXPECT_EQ(bodies("GET", "\r\n"), Bodies{""});
  EXPECT_EQ(bodies("POST", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), Bodies{""});
  for (const std::string_view rest :
       {"Content-Length: 1\r\nContent-Length: 3\r\n\r\nxyz",
        "Content-Length: 3\r\nContent-Length: 1\r\n\r\nxyz",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"}) {
    EXPECT_EQ(bodies("POST", rest), Bodies{}) << rest;
  }
  // It takes for the body of these what came until the end of the connection.
  for (const std::string_view rest :
       {"Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        "\r\nxyz"}) {
    EXPECT_EQ(bodies("POST", rest, true), Bodies{}) << rest;
  }
}

// DELETE has no handler here: this is what cpp-httplib 0.18 makes of one with chunks.
TEST_F(OfHttplib, S10_chunks_that_may_not_have_been_read_are_refused) {
  httplib::Request http;
  http.method = "DELETE";
  EXPECT_TRUE(to_idem(http, "acme"));
  http.headers = {{"Transfer-Encoding", "chunked"}};
  const auto refused = to_idem(http, "acme");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 415);
}

TEST_F(OfHttplib, S14_no_answer_is_cut_to_a_range) {
  auto request = payment("k");
  request.fields.push_back({"Range", "bytes=0-3"});
  EXPECT_EQ(ask(request).status, 400);
  EXPECT_EQ(payments(), 0U);
  EXPECT_EQ(ask(payment("k")).body, answer_.body);
}

TEST_F(OfHttplib, S10_the_addresses_of_the_connection_are_no_fields_of_the_request) {
  httplib::Request http;
  for (const auto& [name, value] : std::vector<idem::Field>{
           {"REMOTE_PORT", "1"}, {"Via", "a"}, {"via", "b"}, {"LOCAL_ADDR", "x"}}) {
    http.set_header(name, value);
  }
  const auto request = to_idem(http, "acme");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->headers, (std::vector<idem::Field>{{"Via", "a"}, {"via", "b"}}));
}

}  // namespace
}  // namespace idem::test
