from importlib import metadata
from pathlib import Path

import pytest
from pydantic import Field, ValidationError

from metaloop.common.settings import EXIT_INVALID_SETTINGS, KubeSettings, Listener, NatsSettings, ServiceSettings, load_settings


class Settings(NatsSettings, KubeSettings, ServiceSettings):
    port: int = Field(default=8081, description="As a service has it.")


def test_every_setting_has_a_default():
    settings = load_settings(Settings)

    assert (settings.log_level, settings.nats_url, settings.ack_wait_seconds) == ("info", "nats://127.0.0.1:4222", 5.0)
    assert settings.listener == Listener(host="127.0.0.1", port=8081)


def test_variable_is_the_prefix_and_the_name_of_the_field(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("METALOOP_NATS_URL", "nats://bus:4222")
    monkeypatch.setenv("METALOOP_PORT", "1234")

    settings = load_settings(Settings)

    assert (settings.nats_url, settings.port) == ("nats://bus:4222", 1234)


def test_invalid_settings_end_the_process_and_name_the_variables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("METALOOP_PORT", "http")
    monkeypatch.setenv("METALOOP_LOG_FORMAT", "hunter2")

    with pytest.raises(SystemExit) as raised:
        load_settings(Settings)

    complaint = capsys.readouterr().err
    assert raised.value.code == EXIT_INVALID_SETTINGS
    assert [line.partition(":")[0] for line in complaint.splitlines()] == ["METALOOP_LOG_FORMAT", "METALOOP_PORT"]
    assert "hunter2" not in complaint


def test_option_takes_precedence_over_its_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("METALOOP_NATS_URL", "nats://bus:4222")
    monkeypatch.setenv("METALOOP_PORT", "1234")

    settings = load_settings(Settings, ["--port", "4321"])

    assert (settings.nats_url, settings.port) == ("nats://bus:4222", 4321)


def test_a_file_gives_what_options_and_variables_do_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "METALOOP_NATS_URL").write_text("nats://user:secret@bus:4222\n")
    (tmp_path / "METALOOP_PORT").write_text("1")
    monkeypatch.setenv("METALOOP_SECRETS_FOLDER", str(tmp_path))
    monkeypatch.setenv("METALOOP_PORT", "1234")

    settings = load_settings(Settings)

    assert (settings.nats_url, settings.port) == ("nats://user:secret@bus:4222", 1234)


def test_unknown_argument_ends_the_process(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as raised:
        load_settings(Settings, ["--prot", "1234"])

    assert raised.value.code == EXIT_INVALID_SETTINGS
    assert "unrecognized arguments: --prot 1234" in capsys.readouterr().err


def test_help_lists_all_options_and_exits_with_0(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as raised:
        load_settings(Settings, ["--help"])

    told = capsys.readouterr().out
    assert raised.value.code == 0
    assert [name for name in Settings.model_fields if f"--{name.replace('_', '-')} " not in told] == []


def test_version_is_printed_and_exits_with_0(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as raised:
        load_settings(Settings, ["--version"])

    assert raised.value.code == 0
    assert capsys.readouterr().out.strip() == metadata.version("metaloop-common")


def test_settings_do_not_change():
    with pytest.raises(ValidationError):
        load_settings(Settings).port = 1


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described(name: str):
    assert Settings.model_fields[name].description


@pytest.mark.parametrize("prefix", ["", "east", "team-1_blue"])
def test_nats_prefix_is_one_plain_token(monkeypatch: pytest.MonkeyPatch, prefix: str):
    monkeypatch.setenv("METALOOP_NATS_PREFIX", prefix)

    assert load_settings(Settings).nats_prefix == prefix


@pytest.mark.parametrize("prefix", ["east.west", "east>", "*", "ea st", "x" * 65])
def test_nats_prefix_that_is_no_plain_token_is_refused(monkeypatch: pytest.MonkeyPatch, prefix: str):
    monkeypatch.setenv("METALOOP_NATS_PREFIX", prefix)

    with pytest.raises(SystemExit):
        load_settings(Settings)
