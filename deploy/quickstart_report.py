#!/usr/bin/env python3
"""Prints what a quickstart run came to: text for people, then one JSON object on the last line.

    quickstart_report.py FOLDER SECONDS

FOLDER holds status.json (`autoloco status --json`) and sample.txt.
"""
import json
import pathlib
import sys


def read_status(folder):
    status = json.loads((folder / "status.json").read_text())
    evaluations = status["evaluations"]
    if len(evaluations) < 2:
        sys.exit(f"quickstart_report: {folder}/status.json: want at least two held-out losses, found {len(evaluations)}")
    # 64-bit integers are strings in protobuf's JSON.
    return {
        "held_out_loss_first": evaluations[0]["loss"],
        "held_out_loss_last": evaluations[-1]["loss"],
        "rounds": int(status["rounds_committed"]),
        "bytes_up": int(status["bytes_up"]),
        "bytes_down": int(status["bytes_down"]),
        # fp32 gradients up and fp32 parameters down in every inner step of every worker
        "bytes_data_parallel": 8 * int(status["parameters"]) * int(status["worker_inner_steps"]),
        "digest": status["params_digest"],
        "model": status["checkpoint"],
    }


def main():
    folder, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    report = read_status(folder)
    report["seconds"] = seconds
    sent = report["bytes_up"] + report["bytes_down"]
    print()
    print("--- a sample of the trained model ---")
    print((folder / "sample.txt").read_text(errors="replace").rstrip())
    print("-------------------------------------")
    print(f"held-out loss   {report['held_out_loss_first']:.4f} -> {report['held_out_loss_last']:.4f} nats a byte "
          f"in {report['rounds']} rounds, {seconds} s")
    print(f"bytes sent      {sent / 1e6:.1f} MB ({report['bytes_up'] / 1e6:.1f} up, {report['bytes_down'] / 1e6:.1f} down); "
          f"data-parallel training: {report['bytes_data_parallel'] / 1e6:.1f} MB, "
          f"{report['bytes_data_parallel'] / sent:.0f} times as much")
    print(f"digest          {report['digest']}")
    print(f"model           {report['model']}")
    print(f"logs            {folder}")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
