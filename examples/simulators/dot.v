// A part of a neural layer: products of weights and inputs, added up.
module dot #(parameter BITS = 8, LANES = 4, PIPELINE = 1) (
    input clk, input x, input w, output reg y
);
  reg [BITS*LANES-1:0] xs, ws;
  reg [2*BITS-1:0] products [0:LANES-1];
  reg [2*BITS+7:0] sum, total, shifted;
  integer lane;
  always @(posedge clk) begin
    xs <= {xs, x};  // values come in bit by bit, so that few pins are needed
    ws <= {ws, w};
    if (PIPELINE)
      for (lane = 0; lane < LANES; lane = lane + 1)
        products[lane] <= xs[lane*BITS+:BITS] * ws[lane*BITS+:BITS];
    total <= total + sum;
    shifted <= shifted[0] ? total : shifted >> 1;
    y <= ^shifted;
  end
  always @* begin
    sum = 0;
    for (lane = 0; lane < LANES; lane = lane + 1)
      sum = sum + (PIPELINE ? products[lane] : xs[lane*BITS+:BITS] * ws[lane*BITS+:BITS]);
  end
endmodule
