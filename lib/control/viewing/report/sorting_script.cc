#include "viewing/report/evaluation_tables.h"

namespace fleet {

const char* sorting_script() {
  return R"(document.querySelectorAll("table.sorted").forEach(table=>{
const rows=Array.from(table.rows),head=rows.shift();
const value=(row,k)=>{const cell=row.cells[k],text=cell.dataset.v||cell.textContent,number=parseFloat(text);return text==="-"?-1:isNaN(number)?text:number};
const order=(a,b)=>typeof a===typeof b?(typeof a==="number"?a-b:a.localeCompare(b)):typeof a==="number"?-1:1;
Array.from(head.cells).forEach((cell,k)=>{let up=k!==0;cell.addEventListener("click",()=>{
up=!up;rows.sort((a,b)=>(up?1:-1)*order(value(a,k),value(b,k)));rows.forEach(row=>row.parentNode.appendChild(row))})})})
)";
}

const char* sorting_script_hash() { return "sha256-tIe7uW8RF20U+ePQJUAXwEBZjPtsPSXYyhBUAqqu+1c="; }

}  // namespace fleet
