import type { ComponentChild } from "preact";

export interface TableRow {
  key: string | number;
  cells: ComponentChild[];
}

/** Rows under named columns; in a narrow window each cell stands in a line of its own, behind its column's name. */
export function Table({ columns, rows, name }: { columns: string[]; rows: TableRow[]; name?: string }) {
  // The roles stay where a narrow window shows no table any more.
  return (
    <table role="table" aria-label={name}>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => <th key={column} scope="col" role="columnheader">{column}</th>)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={row.key} role="row">
            {row.cells.map((cell, index) => <td key={columns[index]} role="cell" data-name={columns[index]}>{cell}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
