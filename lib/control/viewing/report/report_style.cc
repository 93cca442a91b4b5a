#include "viewing/report/report_parts.h"

namespace fleet {

const char* report_style() {
  return R"(
:root{color-scheme:light dark}
body{margin:0 auto;max-width:1000px;padding:16px;font:14px/1.45 system-ui,sans-serif;background:#fff;color:#1f2328}
h1{font-size:22px;margin:8px 0;overflow-wrap:anywhere}h2{font-size:17px;margin:28px 0 8px;border-bottom:1px solid #d8dee4;padding-bottom:4px}
table{border-collapse:collapse;max-width:100%}td,th{text-align:left;padding:3px 14px 3px 0;vertical-align:top;overflow-wrap:anywhere}
th{font-weight:600;color:#656d76;overflow-wrap:normal;white-space:nowrap}.short{white-space:nowrap}li,summary{overflow-wrap:anywhere}td.number,th.number{text-align:right}
pre{background:#f6f8fa;padding:10px;overflow:auto;max-height:480px;border-radius:6px;font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere}
.facts{display:flex;flex-wrap:wrap;gap:6px 28px;padding:0;margin:8px 0}.facts div{min-width:80px}
.facts span{display:block;color:#656d76;font-size:12px}.facts b{font-size:16px;font-weight:600;overflow-wrap:anywhere}
.charts{display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr))}.charts svg{width:100%;max-width:600px;overflow:visible}
.good{color:#1a7f37}.bad{color:#cf222e}.dim{color:#656d76}.default td{color:#656d76}
svg{max-width:100%;height:auto;display:block}summary{cursor:pointer;margin:8px 0}
.bar{display:flex;height:22px;border-radius:4px;overflow:hidden;margin:8px 0}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}h2{border-color:#30363d}
pre{background:#161b22}.chart text{fill:#e6edf3}.chart .unit,.chart .label{fill:#8d96a0}.chart .grid{stroke:#30363d}
.chart .line0{stroke:#6ea8fe}.chart .line1{stroke:#f0883e}}
@media(max-width:500px){body{padding:10px}td,th{padding-right:8px;font-size:12px}.charts .chart{font-size:16px}.charts .chart .title{font-size:18px}}
@media print{pre{max-height:none}}
)";
}

}  // namespace fleet
