"""Verilog-2005 of processing elements and edge blocks, from the bit heap that is counted."""

from archgym.envs.tpe.eda.verilog.builder import Module, Port, Verilog
from archgym.envs.tpe.eda.verilog.edge_blocks import edge_verilog
from archgym.envs.tpe.eda.verilog.processing_element import pe_verilog

__all__ = ["Module", "Port", "Verilog", "edge_verilog", "pe_verilog"]
