// The report's plot: no library, a few shapes of SVG.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tests/bench/learning/report.h"

namespace autoloco::bench {
namespace {

constexpr double kWidth = 860;
constexpr double kPanelHeight = 420;
constexpr double kLeft = 70;
constexpr double kRight = 250;
constexpr double kTop = 40;
constexpr double kBottom = 50;
constexpr double kLossSpan = 0.25;  // above the best loss; what is worse is not drawn, but counted

const char* const kColors[] = {"#1b6ca8", "#d1495b", "#66a182", "#edae49", "#6a4c93", "#3d3d3d",
                               "#00798c", "#c06c84", "#8d99ae", "#b5651d", "#2a9d8f", "#9b2226"};

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// From numbers to places on the page: rounds on a logarithmic axis, loss on a linear one.
struct Axes {
  double top = 0;
  double rounds_min = 1;
  double rounds_max = 10;
  double loss_min = 0;
  double loss_max = 1;

  double X(double rounds) const {
    const double place = std::log(rounds / rounds_min) / std::log(rounds_max / rounds_min);
    return kLeft + place * (kWidth - kLeft - kRight);
  }
  double Y(double loss) const {
    const double place = (loss_max - loss) / (loss_max - loss_min);
    return top + kTop + place * (kPanelHeight - kTop - kBottom);
  }
};

Axes MakeAxes(const std::vector<const ReportLine*>& drawn, double top) {
  Axes axes;
  axes.top = top;
  axes.rounds_min = std::numeric_limits<double>::infinity();
  axes.rounds_max = 0;
  axes.loss_min = std::numeric_limits<double>::infinity();
  axes.loss_max = -axes.loss_min;
  for (const ReportLine* line : drawn) {
    axes.rounds_min = std::min(axes.rounds_min, line->rounds / 1.3);
    axes.rounds_max = std::max(axes.rounds_max, line->rounds * 1.3);
    axes.loss_min = std::min(axes.loss_min, line->loss.mean - line->loss.error - 0.01);
    axes.loss_max = std::max(axes.loss_max, line->loss.mean + line->loss.error + 0.01);
  }
  return axes;
}

void AppendFrame(const Axes& axes, const std::string& title, std::string* svg) {
  const double bottom = axes.top + kPanelHeight - kBottom;
  absl::StrAppendFormat(svg, "<text x='%.0f' y='%.0f' font-size='15'>%s</text>\n", kLeft, axes.top + 24, Escape(title));
  absl::StrAppendFormat(svg, "<rect x='%.0f' y='%.0f' width='%.0f' height='%.0f' fill='none' stroke='#888'/>\n", kLeft,
                        axes.top + kTop, kWidth - kLeft - kRight, kPanelHeight - kTop - kBottom);
  for (int i = 0; i <= 4; ++i) {
    const double loss = axes.loss_min + (axes.loss_max - axes.loss_min) * i / 4;
    absl::StrAppendFormat(svg, "<text x='%.0f' y='%.1f' text-anchor='end'>%.3f</text>\n", kLeft - 6, axes.Y(loss) + 4,
                          loss);
    const double rounds = axes.rounds_min * std::pow(axes.rounds_max / axes.rounds_min, i / 4.0);
    absl::StrAppendFormat(svg, "<text x='%.1f' y='%.0f' text-anchor='middle'>%.0f</text>\n", axes.X(rounds),
                          bottom + 16, rounds);
  }
  absl::StrAppendFormat(svg, "<text x='%.0f' y='%.0f' text-anchor='middle'>rounds</text>\n",
                        (kLeft + kWidth - kRight) / 2, bottom + 34);
}

void AppendPoint(const Axes& axes, const ReportLine& line, std::size_t index, std::string* svg) {
  const char* color = kColors[index % std::size(kColors)];
  const double x = axes.X(line.rounds);
  absl::StrAppendFormat(svg, "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' stroke='%s'/>\n", x, x,
                        axes.Y(line.loss.mean - line.loss.error), axes.Y(line.loss.mean + line.loss.error), color);
  absl::StrAppendFormat(svg, "<circle cx='%.1f' cy='%.1f' r='4' fill='%s'/>\n", x, axes.Y(line.loss.mean), color);
  const double label = axes.top + kTop + 12 + 13.0 * static_cast<double>(index);
  absl::StrAppendFormat(svg, "<circle cx='%.0f' cy='%.1f' r='4' fill='%s'/><text x='%.0f' y='%.1f'>%s</text>\n",
                        kWidth - kRight + 14, label - 4, color, kWidth - kRight + 24, label,
                        Escape(absl::StrCat(line.method, line.codec == "fp32" ? "" : ", " + line.codec)));
}

void AppendPanel(const std::vector<const ReportLine*>& lines, double top, std::string* svg) {
  double best = std::numeric_limits<double>::infinity();
  for (const ReportLine* line : lines) best = std::min(best, line->loss.mean);
  std::vector<const ReportLine*> drawn;
  for (const ReportLine* line : lines) {
    if (line->rounds > 0 && line->loss.mean <= best + kLossSpan) drawn.push_back(line);
  }
  if (drawn.empty()) return;
  const Axes axes = MakeAxes(drawn, top);
  std::string title = absl::StrCat("held-out loss (nats a byte), ", lines[0]->data, " data, ", lines[0]->schedule);
  if (drawn.size() < lines.size()) {
    absl::StrAppend(&title, "; ", lines.size() - drawn.size(), " without rounds or far above are left out");
  }
  AppendFrame(axes, title, svg);
  for (std::size_t i = 0; i < drawn.size(); ++i) AppendPoint(axes, *drawn[i], i, svg);
}

}  // namespace

std::string ReportSvg(const std::vector<ReportLine>& lines) {
  std::vector<std::pair<std::string, std::vector<const ReportLine*>>> panels;
  for (const ReportLine& line : lines) {
    const std::string key = absl::StrCat(line.data, "/", line.schedule);
    auto panel = std::find_if(panels.begin(), panels.end(), [&](const auto& other) { return other.first == key; });
    if (panel == panels.end()) panel = panels.insert(panels.end(), {key, {}});
    panel->second.push_back(&line);
  }
  const double height = kPanelHeight * static_cast<double>(std::max<std::size_t>(1, panels.size()));
  std::string svg = absl::StrFormat(
      "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' height='%.0f' font-family='sans-serif' font-size='11'>\n"
      "<rect width='100%%' height='100%%' fill='white'/>\n",
      kWidth, height);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    AppendPanel(panels[i].second, kPanelHeight * static_cast<double>(i), &svg);
  }
  return svg + "</svg>\n";
}

}  // namespace autoloco::bench
