#include "store/file_findings.hpp"

namespace idem {

void FileFindings::add(std::string where, std::string what, std::string todo) {
  ++report_.found;
  if (report_.findings.size() >= file_findings_max) return;
  report_.findings.push_back({std::move(where), std::move(what), std::move(todo)});
}

void FileFindings::add(const RecordId& record, std::string_view what, std::string todo) {
  add("record " + to_hex(record.bytes), std::string(what), std::move(todo));
}

const char* file_todo::line_of(std::string_view journal) noexcept {
  return journal.starts_with("audit")
             ? "compare with a copy of the audit that you keep elsewhere (idem audit verify)"
             : "the order or key that it belongs to is not carried on: look for it with idem jobs, "
               "idem approvals and idem store rekey";
}

}  // namespace idem
