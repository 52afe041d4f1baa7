#include "cli/reconcile_list.hpp"

#include "cli/admin_client.hpp"
#include "cli/commands.hpp"
#include "webhook/fetch.hpp"

#include <idem/worker_limits.hpp>

#include <fstream>
#include <iterator>

namespace idem::cli {
namespace {

using Page = std::expected<std::optional<std::string>, std::string>;

bool is_secure(const std::string& url) { return url.starts_with("https://"); }

/// Fetches one page after the other.
class Pages {
 public:
  Pages(ListPlace place, JsonPointer next, FetchRequest request,
        std::shared_ptr<FramedDigest> digest, std::shared_ptr<bool> not_reachable)
      : place_(std::move(place)),
        next_(std::move(next)),
        request_(std::move(request)),
        digest_(std::move(digest)),
        not_reachable_(std::move(not_reachable)) {}

  Page next_page() {
    if (request_.url.empty()) return std::nullopt;
    if (++count_ > limits::export_pages_max) return std::unexpected("the list does not end");
    auto page = fetch();
    if (!page) return std::unexpected(page.error());
    digest_->add_bytes(*page);
    if (auto moved = move_on(*page); !moved) return std::unexpected(moved.error());
    return std::optional(std::move(*page));
  }

 private:
  std::string number() const { return "page " + std::to_string(count_) + ": "; }

  std::expected<std::string, std::string> fetch() {
    std::string why;
    for (int tries = 0; tries < limits::export_page_tries; ++tries) {
      auto answer = fetcher_.fetch(request_);
      *not_reachable_ = !answer && answer.error().kind != FetchError::Kind::refused_by_rule;
      if (answer && answer->status == 200) return std::move(answer->body);
      why = answer ? "it answered " + std::to_string(answer->status) : answer.error().why;
      const bool may_pass = answer ? answer->status >= 500 || answer->status == 429
                                   : answer.error().kind != FetchError::Kind::refused_by_rule;
      if (!may_pass) break;
    }
    return std::unexpected(number() + why);
  }

  std::expected<void, std::string> move_on(std::string_view page) {
    // A page that is no JSON is told by who reads its items.
    const auto found = check_json(page) ? next_.find(page) : std::nullopt;
    const std::string next = found ? scalar_of(*found).value_or("") : "";
    if (next.empty() || next == "false") {
      request_.url.clear();
      return {};
    }
    auto url = place_.next_parameter.empty() ? next_url(request_.url, "", next)
                                             : next_url(place_.url, place_.next_parameter, next);
    if (!url) return std::unexpected(number() + url.error());
    if (*url == request_.url) return std::unexpected(number() + "it says that it is next itself");
    if (is_secure(request_.url) && !is_secure(*url)) {
      return std::unexpected(number() + "what is next is no https any more");
    }
    request_.url = std::move(*url);
    return {};
  }

  ListPlace place_;
  JsonPointer next_;
  FetchRequest request_;
  std::shared_ptr<FramedDigest> digest_;
  std::shared_ptr<bool> not_reachable_;
  Fetcher fetcher_;
  std::size_t count_ = 0;
};

std::expected<std::string, std::string> credential_in(const std::string& path) {
  if (auto good = check_secret_file(path); !good) return std::unexpected(good.error());
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (!file.good() || text.empty()) return std::unexpected(path + ": holds no credential");
  return text;
}

}  // namespace

std::expected<std::string, std::string> next_url(const std::string& list,
                                                 const std::string& parameter,
                                                 const std::string& next) {
  if (!parameter.empty()) {
    const char between = list.find('?') == list.npos ? '?' : '&';
    return list + between + parameter + '=' + percent_encoded(next);
  }
  if (next.starts_with("http://") || next.starts_with("https://")) return next;
  if (!next.starts_with('/') || next.starts_with("//")) {
    return std::unexpected(
        "what is next is neither a URL nor a path; a cursor needs the name of "
        "its parameter, --next-parameter");
  }
  const auto host = list.find("://") + 3;
  return list.substr(0, list.find_first_of("/?#", host)) + next;
}

std::expected<compare::ListPages, std::string> list_pages(const ReconcileOptions& options,
                                                          std::shared_ptr<FramedDigest> digest,
                                                          std::shared_ptr<bool> not_reachable) {
  const ListPlace& place = options.list;
  auto host = fetch_host_of(place.url);
  if (!host) return std::unexpected("--url: " + host.error());
  auto items = JsonPointer::parse(place.items);
  if (!items) return std::unexpected("--items: " + items.error());
  auto next = JsonPointer::parse(place.next);
  if (!next) return std::unexpected("--next: " + next.error());
  FetchRequest request{.url = place.url,
                       .headers = {{"Accept", "application/json"}},
                       .timeout = options.page_timeout,
                       .allowed_hosts = place.allowed_hosts,
                       .ca_file = place.ca_file};
  request.allowed_hosts.push_back(std::move(*host));
  if (!place.auth_file.empty()) {
    auto credential = credential_in(place.auth_file);
    if (!credential) return std::unexpected("--auth-file: " + credential.error());
    request.headers.push_back({"Authorization", std::move(*credential)});
  }
  auto pages = std::make_shared<Pages>(place, std::move(*next), std::move(request),
                                       std::move(digest), std::move(not_reachable));
  return compare::ListPages{[pages] { return pages->next_page(); }, std::move(*items)};
}

}  // namespace idem::cli
