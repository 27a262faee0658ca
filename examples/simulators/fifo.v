// A queue between a producer that writes in bursts and a consumer that pauses.
module fifo #(parameter DEPTH = 8, WIDTH = 32) (
    input clk, input push, input pop, input [WIDTH-1:0] in,
    output [WIDTH-1:0] out, output full, output empty
);
  reg [WIDTH-1:0] cells [0:DEPTH-1];
  integer head = 0, tail = 0, used = 0;
  assign full = used == DEPTH;
  assign empty = used == 0;
  assign out = cells[head];
  always @(posedge clk) begin
    if (push && !full) begin
      cells[tail] <= in;
      tail <= tail == DEPTH - 1 ? 0 : tail + 1;
    end
    if (pop && !empty) head <= head == DEPTH - 1 ? 0 : head + 1;
    used <= used + (push && !full) - (pop && !empty);
  end
endmodule

module bench;
  parameter DEPTH = 8, WIDTH = 32, BURST = 4, WORDS = 4096;
  localparam BEATS = WORDS * 32 / WIDTH;
  reg clk = 0;
  wire full, empty;
  integer cycle = 0, written = 0, taken = 0, stalls = 0;
  // BURST beats in a row, then a pause as long; the consumer takes three beats of four cycles.
  wire push = written < BEATS && (cycle % (2 * BURST)) < BURST;
  wire pop = cycle % 4 != 3 && cycle % 64 < 56;
  fifo #(DEPTH, WIDTH) queue (clk, push, pop, {WIDTH{1'b1}}, , full, empty);
  always #1 clk = !clk;
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (push && !full) written <= written + 1;
    if (push && full) stalls <= stalls + 1;
    if (pop && !empty) taken <= taken + 1;
    if (pop && !empty && (taken + 1) % (BEATS / 16) == 0) begin
      $display("cycles: %0d", cycle);  // so far
      $display("taken: %0d", taken + 1);
      $fflush;
    end
    if (taken == BEATS) begin
      $display("cycles: %0d", cycle);
      $display("stalls: %0d", stalls);
      $finish;
    end
  end
endmodule
