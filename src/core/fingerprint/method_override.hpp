#pragma once

#include <set>
#include <string>
#include <string_view>

namespace idem {

/// The method that some servers run in place of a request's own: Rack, Symfony, Laravel, ASP.NET,
/// WordPress, Spring and others take it from a header field, or from a parameter of the query, of a
/// form, or of a JSON body. Names are compared as servers read them.
class MethodOverride {
 public:
  /// True for X-HTTP-Method-Override, X-Method-Override, X-HTTP-Method, and names that a server may
  /// confuse with one of them.
  static bool is_field(std::string_view name) noexcept;

  void add_field(std::string_view name, std::string_view value);
  /// The parameters `_method`, and those with the name of such a field. `query`: without its `?`.
  void add_query(std::string_view query);
  /// The same in a form or multipart, and the member `_method` of a JSON object. A body without a
  /// content type counts as a form (Rack). Reads the whole body.
  void add_body(std::string_view content_type, std::string_view body);

  /// True where there is one, whatever it says.
  bool asked() const noexcept { return !places_.empty(); }
  /// False: two of them differ, or one is no method.
  bool is_clear() const noexcept { return clear_; }
  /// In capitals, as servers read it. Only of one that is clear.
  const std::string& method() const noexcept { return method_; }
  /// What counts in place of the request's method: that, and each place with its value. Two
  /// requests differ in it if they differ in either. Only of one that is clear.
  std::string counted(std::string_view method) const;

 private:
  void add_form(std::string_view form, std::string_view kind);
  void add(std::string place, std::string_view value);

  std::set<std::string> places_;
  std::string value_;  ///< As it came.
  std::string method_;
  bool clear_ = true;
};

}  // namespace idem
