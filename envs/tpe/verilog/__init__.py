"""Verilog-2005 of processing elements and edge blocks, from the bit heap that is counted."""

from archgym.envs.tpe.verilog.edge import edge_verilog
from archgym.envs.tpe.verilog.element import pe_verilog
from archgym.envs.tpe.verilog.module import Module, Port, Verilog

__all__ = ["Module", "Port", "Verilog", "edge_verilog", "pe_verilog"]
