# Akunu for Nix: nix run ./packaging -- run "What is 17 + 25?"
{
  description = "Run language models, embedding models and Whisper on your own machine";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: {
        default = pkgs.python3Packages.buildPythonApplication {
          pname = "akunu";
          version = (builtins.fromTOML (builtins.readFile ../pyproject.toml)).project.version;
          pyproject = true;
          src = ./..;

          build-system = with pkgs.python3Packages; [ scikit-build-core pybind11 ];
          nativeBuildInputs = [ pkgs.cmake pkgs.ninja pkgs.installShellFiles ];
          dontUseCmakeConfigure = true; # scikit-build-core runs CMake

          dependencies = with pkgs.python3Packages; [
            click
            gguf
            huggingface-hub
            jinja2
            llguidance
            msgspec
            numpy
            pillow
            prometheus-client
            python-multipart
            rich
            soundfile
            soxr
            starlette
            tokenizers
            uvicorn
          ];

          postInstall = ''
            PYTHONPATH=$out/${pkgs.python3.sitePackages}:$PYTHONPATH python -m akunu.cli.manual man
            installManPage man/*.1
          '';

          pythonImportsCheck = [ "akunu" ];

          meta = {
            description = "Run language models, embedding models and Whisper on your own machine";
            license = with pkgs.lib.licenses; [ asl20 mit ];
            mainProgram = "akunu";
            platforms = systems;
          };
        };
      });
    };
}
