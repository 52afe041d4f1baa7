#include "cli/reconcile/reconcile_list.hpp"

#include "cli/commands/admin_client.hpp"
#include "cli/settings/secret_file.hpp"
#include "core/bytes/percent.hpp"
#include "webhook/fetch.hpp"

#include <idem/worker_limits.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

namespace idem::cli {
namespace {

using Page = std::expected<std::optional<std::string>, std::string>;

// Where a page may say that there is another one without naming it: beside the member --next, and
// at the top.
std::vector<JsonPointer> flags_beside(const std::string& next) {
  std::vector<JsonPointer> flags;
  for (const auto& beside : {std::string(), next.substr(0, next.rfind('/'))}) {
    for (const auto* name : {"/has_more", "/hasMore"}) {
      if (auto flag = JsonPointer::parse(beside + name)) flags.push_back(std::move(*flag));
    }
  }
  return flags;
}

bool is_secure(const std::string& url) { return url.starts_with("https://"); }

/// Fetches the pages one after the other.
class Pages {
 public:
  Pages(ListPlace place, JsonPointer next, FetchRequest request,
        std::shared_ptr<FramedDigest> digest, std::shared_ptr<ListEnd> end)
      : place_(std::move(place)),
        next_(std::move(next)),
        more_(flags_beside(place_.next)),
        request_(std::move(request)),
        digest_(std::move(digest)),
        end_(std::move(end)) {
    seen_.insert(compare::name_of(request_.url));
  }

  Page next_page() {
    if (request_.url.empty()) return std::nullopt;
    if (++count_ > limits::export_pages_max) return std::unexpected("the list does not end");
    auto page = fetch();
    if (!page) return std::unexpected(page.error());
    digest_->add_bytes(page->body);
    if (auto moved = move_on(*page); !moved) return std::unexpected(number() + moved.error());
    return std::optional(std::move(page->body));
  }

 private:
  std::string number() const { return "page " + std::to_string(count_) + ": "; }

  std::expected<FetchAnswer, std::string> fetch() {
    std::string why;
    for (int tries = 0; tries < limits::export_page_tries; ++tries) {
      auto answer = fetcher_.fetch(request_);
      end_->not_reachable = !answer && answer.error().kind != FetchError::Kind::refused_by_rule;
      if (answer && answer->status == 200) return std::move(*answer);
      why = answer ? "it answered " + std::to_string(answer->status) : answer.error().why;
      const bool may_pass = answer ? answer->status >= 500 || answer->status == 429
                                   : answer.error().kind != FetchError::Kind::refused_by_rule;
      if (!may_pass) break;
    }
    return std::unexpected(number() + why);
  }

  // Empty: it is the last page. A page that is wrongly regarded as the last one would make the
  // items of all later pages look missing.
  std::expected<std::string, std::string> next_of(const FetchAnswer& page) {
    // The reader of the items reports a page that is no JSON.
    if (!check_json(page.body)) return "";
    const auto next = next_.find(page.body);
    if (next) {
      end_->states_its_end = true;
      if (next->front() == '{' || next->front() == '[' || *next == "true") {
        return std::unexpected("the member --next, " + place_.next +
                               ", is neither text nor null; give the place of a text, such as "
                               "/_links/next/href, as --next");
      }
      const auto text = *next == "false" ? std::nullopt : scalar_of(*next);
      if (text && !text->empty()) return *text;
    }
    if (has_flag(page.body, "true")) {
      return std::unexpected("the provider announces another page, and " + place_.next +
                             " does not name it");
    }
    const std::string_view link = page.header("Link");
    if (link.contains("rel=\"next\"") || link.contains("rel=next")) {
      return std::unexpected("its next page is in the Link field, which is not supported");
    }
    end_->states_its_end |= has_flag(page.body, "false");
    return "";
  }

  bool has_flag(std::string_view page, std::string_view literal) const {
    return std::ranges::any_of(more_, [&](const auto& flag) { return flag.find(page) == literal; });
  }

  std::expected<void, std::string> move_on(const FetchAnswer& page) {
    const auto next = next_of(page);
    if (!next) return std::unexpected(next.error());
    if (next->empty()) {
      request_.url.clear();
      return {};
    }
    auto url = place_.next_parameter.empty() ? next_url(request_.url, "", *next)
                                             : next_url(place_.url, place_.next_parameter, *next);
    if (!url) return std::unexpected(url.error());
    if (!seen_.insert(compare::name_of(*url)).second) {
      return std::unexpected("its next page was read before");
    }
    if (is_secure(request_.url) && !is_secure(*url)) {
      return std::unexpected("its next page is not https");
    }
    request_.url = std::move(*url);
    return {};
  }

  ListPlace place_;
  JsonPointer next_;
  std::vector<JsonPointer> more_;
  FetchRequest request_;
  std::shared_ptr<FramedDigest> digest_;
  std::shared_ptr<ListEnd> end_;
  std::set<compare::Name> seen_;  // URLs of the pages read.
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
        "the next page is neither a URL nor a path; for a cursor give the name of "
        "its parameter, --next-parameter");
  }
  const auto host = list.find("://") + 3;
  return list.substr(0, list.find_first_of("/?#", host)) + next;
}

std::expected<compare::ListPages, std::string> list_pages(const ReconcileOptions& options,
                                                          std::shared_ptr<FramedDigest> digest,
                                                          std::shared_ptr<ListEnd> end) {
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
                                       std::move(digest), std::move(end));
  return compare::ListPages{[pages] { return pages->next_page(); }, std::move(*items)};
}

}  // namespace idem::cli
