#pragma once

#include <idem/guard.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>

/// What the steps of docs/tutorial.md share and none of them is about: the words of the command
/// line, HTTP in both directions, a table.
namespace tutorial {

/// tutorial-stepN [STORE-URL] [PORT] [PROVIDER-URL] [SECRET-FILE]
struct Words {
  std::string store = "sqlite:./tutorial.db";
  int port = 9100;
  std::string provider = "http://127.0.0.1:9000";
  std::string secret{};  ///< What stands in the file; of step 5.
};
Words words_of(int count, char** words);

/// The store, with a table `payments (id, request, state, charge)`; its events go to stderr. Ends
/// the process where it cannot be opened.
std::unique_ptr<idem::Engine> open_engine(const Words& words);

struct Heard {
  int status = 0;        ///< 0: no answer came.
  bool was_sent = true;  ///< False: not one byte of the request has left.
  std::string body{};
};
/// One POST on a connection of its own, with `key` as its Idempotency-Key where there is one. Waits
/// half a second for a connection, and for each write and read.
Heard post(const std::string& url, const std::string& body, const std::string& key = {});

/// Answers POSTs by their path; `GET /payments` shows the table. Until the process is ended.
using Handler = std::function<idem::Response(const idem::Request&)>;
int serve(idem::Engine& engine, int port, const std::map<std::string, Handler>& handlers);

}  // namespace tutorial
