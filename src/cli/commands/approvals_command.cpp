#include "cli/commands/approvals_command.hpp"

#include "cli/commands/admin_values.hpp"
#include "cli/commands/approvals_print.hpp"
#include "core/bytes/percent.hpp"
#include "json/writer.hpp"

namespace idem::cli {

ApprovalsCommand::ApprovalsCommand(const Command& program)
    : OperatorCommand(program, "approvals",
                      "See, approve and reject orders that need several people"),
      list_(declare("list", "List orders that wait or waited, the newest first")),
      show_(declare("show", "One order, and its record as it is now")),
      approve_(declare("approve", "Approve an order; with the last approval it is done")),
      reject_(declare("reject", "Reject an order, also one of your own")) {
  for (const auto& one : {show_, approve_, reject_}) {
    one.add_option("id", id_, "the approval's id: 32 hexadecimal digits")
        .required()
        .valid(why_no_id);
  }
  for (const auto& one : {approve_, reject_}) {
    one.add_option("--reason", reason_, "why, for the audit").required();
  }
  list_.add_option("--limit", limit_, "orders in a page").between(1, 100);
  list_.add_option("--cursor", cursor_, "continue after an earlier page");
}

int ApprovalsCommand::run() {
  std::string target = "/v1/approvals";
  if (list_.parsed()) {
    if (limit_) add_parameter(target, "limit", std::to_string(*limit_));
    add_parameter(target, "cursor", cursor_);
    return finish(target, nullptr, print_approvals);
  }
  target += '/' + percent_encoded(id_);
  if (show_.parsed()) return finish(target, nullptr, print_approval);
  json::Writer order;
  order.begin_object();
  order.member("reason", reason_);
  order.end_object();
  const std::string body = order.take();
  return finish(target + (approve_.parsed() ? "/approve" : "/reject"), &body, print_approval);
}

}  // namespace idem::cli
