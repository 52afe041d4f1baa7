#include "cli/commands/admin_command.hpp"

#include "admin/login/tokens.hpp"
#include "admin/tokens_json.hpp"
#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "core/bytes/percent.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/record/store_clock.hpp"
#include "json/value.hpp"

#include <algorithm>
#include <cstdio>

namespace idem::cli {
namespace {

// An operator as root may look after the file of the gateway's user.
constexpr auto tokens_owner = admin::Owner::anyones_for_root;

bool print_made(const std::string& body) {
  const auto made = json::parse(body);
  const auto* const token = made ? made->find("token") : nullptr;
  if (token == nullptr) return false;
  std::printf("%s\n", text_of(token).c_str());
  std::fprintf(stderr,
               "The token is shown only now. Log in with IDEM_ADMIN_TOKEN, or as "
               "\"Authorization: Bearer TOKEN\".\n");
  return true;
}

bool print_list(const std::string& body) {
  const auto page = json::parse(body);
  if (!page || page->find("tokens") == nullptr) return false;
  std::vector<std::vector<std::string>> rows{{"NAME", "ROLE", "MADE"}};
  for (const auto& one : items_of(page->find("tokens"))) {
    rows.push_back(
        {text_of(one.find("name")), text_of(one.find("role")), text_of(one.find("made_at"))});
  }
  print_table(rows, {"NAME"});
  return true;
}

}  // namespace

AdminCommand::AdminCommand(const Command& program)
    : OperatorCommand(program, "admin", "Tokens of the admin API and their roles"),
      make_(declare("token", "Make a token with a role, and print it; nobody can read it again")),
      list_(declare("tokens", "List the names and roles of tokens")),
      revoke_(declare("revoke", "Revoke a token at once")) {
  make_.add_option("NAME", name_, "who gets it; the evidence log names decisions by it").required();
  make_.add_option("--role", role_, "viewer, support or operator")
      .required()
      .one_of({"viewer", "support", "operator"});
  revoke_.add_option("NAME", name_, "whose token it is").required();
  revoke_.add_option("--reason", reason_, "for the gateway's log; needed without --tokens-file");
  for (const auto& verb : {make_, list_, revoke_}) {
    verb.add_option("--tokens-file", file_,
                    "the file of a gateway's admin_tokens, instead of asking a running gateway")
        .file();
  }
}

int AdminCommand::run() {
  if (make_.parsed()) return make();
  return list_.parsed() ? list() : revoke();
}

int AdminCommand::make() {
  if (file_.empty()) {
    json::Writer out;
    out.begin_object();
    out.member("name", name_);
    out.member("role", role_);
    out.end_object();
    const std::string body = out.take();
    return finish("/v1/tokens", &body, print_made);
  }
  const auto entries = admin::read_tokens(file_, tokens_owner);
  if (entries &&
      std::ranges::any_of(*entries, [&](const auto& one) { return one.name == name_; })) {
    return complain("there is a token of this name; revoke it first, or choose another", refused);
  }
  const auto role = admin::parse_role(role_).value_or(admin::Role::viewer);
  const auto token = admin::add_token(file_, name_, role, to_rfc3339(wall_time()), tokens_owner);
  if (!token) return complain(token.error(), failed);
  return show(admin::token_page(name_, role, *token), print_made);
}

int AdminCommand::list() {
  if (file_.empty()) return finish("/v1/tokens", nullptr, print_list);
  const auto entries = admin::read_tokens(file_, tokens_owner);
  if (!entries) return complain(entries.error(), failed);
  return show(admin::tokens_page(*entries), print_list);
}

int AdminCommand::revoke() {
  if (file_.empty()) {
    if (reason_.empty()) return complain("say why, with --reason TEXT", usage);
    json::Writer out;
    out.begin_object();
    out.member("reason", reason_);
    out.end_object();
    const std::string body = out.take();
    return finish("/v1/tokens/" + percent_encoded(name_) + "/revoke", &body, print_list);
  }
  const auto revoked = admin::revoke_token(file_, name_, tokens_owner);
  if (!revoked) return complain(revoked.error(), failed);
  if (!*revoked) return complain("no token has this name", not_found);
  return list();
}

}  // namespace idem::cli
