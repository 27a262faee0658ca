"""A cell library of two cells with energies that are easy to add up."""

LIBERTY = """
library (tiny) {
  delay_model : table_lookup; time_unit : "1ns"; voltage_unit : "1V"; current_unit : "1mA";
  leakage_power_unit : "1nW"; capacitive_load_unit (1, pf); nom_voltage : 2.0;
  cell (NAND2) { area : 2; cell_leakage_power : 4;
    pin (A) { direction : input; capacitance : 0.01; }
    pin (B) { direction : input; capacitance : 0.03; }
    pin (Y) { direction : output; function : "(A B)'";
      timing () { related_pin : "A B"; timing_sense : negative_unate;
        cell_rise (scalar) { values ("0.1"); } cell_fall (scalar) { values ("0.1"); }
        rise_transition (scalar) { values ("0.1"); } fall_transition (scalar) { values ("0.1"); } }
      internal_power () { related_pin : "A B";
        rise_power (scalar) { values ("0.030"); } fall_power (scalar) { values ("0.010"); } } } }
  cell (DFF) { area : 10; cell_leakage_power : 20;
    ff (IQ, IQN) { clocked_on : "CK"; next_state : "D"; }
    pin (D) { direction : input; capacitance : 0.01;
      timing () { related_pin : "CK"; timing_type : setup_rising;
        rise_constraint (scalar) { values ("0.1"); } fall_constraint (scalar) { values ("0.1"); } }
      internal_power () { rise_power (scalar) { values ("0.005"); }
        fall_power (scalar) { values ("0.005"); } } }
    pin (CK) { direction : input; clock : true; capacitance : 0.02;
      internal_power () { rise_power (scalar) { values ("0.02"); }
        fall_power (scalar) { values ("0.01"); } } }
    pin (Q) { direction : output; function : "IQ";
      timing () { related_pin : "CK"; timing_type : rising_edge;
        cell_rise (scalar) { values ("0.1"); } cell_fall (scalar) { values ("0.1"); }
        rise_transition (scalar) { values ("0.1"); } fall_transition (scalar) { values ("0.1"); } }
      internal_power () { related_pin : "CK"; rise_power (scalar) { values ("0.06"); }
        fall_power (scalar) { values ("0.04"); } } } }
}
"""
